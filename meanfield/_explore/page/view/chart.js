// Line charts by uPlot, in the page's colours and as wide as their place.

/** A colour of the style sheet, by its name. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A share as a whole percentage. */
export function wholePercent(share) {
  return `${Math.round(100 * share)} %`;
}

const FONT = "13px system-ui, sans-serif";

/**
 * A chart in `element`. `x` and `y` are {range, log, format}; `lines` are {colour, width, dash}; `draw` paints on
 * it. Colours are named. It is made anew when the screen turns dark or light.
 */
export class Chart {
  constructor(element, { x, y, lines, draw = () => {}, height = 300 }) {
    Object.assign(this, { element, x, y, lines, draw, height, data: [[], ...lines.map(() => [])] });
    this.make();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.make());
    new ResizeObserver(() => this.fit()).observe(element);
  }

  make() {
    this.plot?.destroy();
    this.plot = new uPlot(
      {
        width: this.width(),
        height: this.height,
        pxAlign: 0, // whole pixels would make steps of slopes
        legend: { show: false },
        cursor: { show: false },
        select: { show: false },
        padding: [10, 26, 0, 0],
        scales: { x: scaleOf(this.x), y: scaleOf(this.y) },
        axes: [axisOf(this.x, 34), axisOf(this.y, 56)],
        series: [{}, ...this.lines.map(seriesOf)],
        hooks: { draw: [(plot) => this.draw(plot)] },
      },
      this.data,
      this.element,
    );
  }

  width() {
    return Math.max(200, Math.floor(this.element.clientWidth));
  }

  fit() {
    if (this.width() !== this.plot.width) this.plot.setSize({ width: this.width(), height: this.height });
  }

  /** Names the axes. */
  label(x, y) {
    [this.x.label, this.y.label] = [x, y];
    [this.plot.axes[0].label, this.plot.axes[1].label] = [x, y];
  }

  /** Draws these columns: arguments, then values for each line. */
  show(data) {
    this.data = data;
    this.plot.setData(data);
  }
}

function scaleOf({ range, log = false }) {
  return { time: false, distr: log ? 3 : 1, range };
}

function axisOf({ label = " ", format }, size) {
  return {
    label,
    size,
    labelSize: 22,
    font: FONT,
    labelFont: FONT,
    stroke: colour("soft"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("grid"), width: 1, size: 4 },
    ...(format && { values: (_, splits) => splits.map((value) => (value === null ? null : format(value))) }),
  };
}

function seriesOf({ colour: name, width = 2, dash }) {
  return { stroke: colour(name), width, dash, points: { show: false }, spanGaps: true, pxAlign: 0 };
}

/** Paints on a chart, in units of its axes: {line, circle, band, arrow}. */
export function brush(plot) {
  const { ctx } = plot;
  const ratio = devicePixelRatio;
  const at = (x, y) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
  const clipped = (paint) => {
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top - 4 * ratio, plot.bbox.width + 8 * ratio, plot.bbox.height + 8 * ratio);
    ctx.clip();
    paint();
    ctx.restore();
  };
  return {
    line(points, name, width = 2, dash = []) {
      clipped(() => {
        ctx.strokeStyle = colour(name);
        ctx.lineWidth = width * ratio;
        ctx.lineJoin = "round";
        ctx.setLineDash(dash.map((length) => length * ratio));
        ctx.beginPath();
        points.forEach(([x, y]) => ctx.lineTo(...at(x, y)));
        ctx.stroke();
      });
    },
    circle([x, y], name, filled, radius = 6) {
      ctx.save();
      ctx.beginPath();
      ctx.arc(...at(x, y), radius * ratio, 0, 2 * Math.PI);
      ctx.lineWidth = 2.5 * ratio;
      ctx.fillStyle = colour(filled ? name : "card");
      ctx.strokeStyle = colour(name);
      ctx.fill();
      ctx.stroke();
      ctx.restore();
    },
    band(from, to, name, edge) {
      const [left, right] = [plot.valToPos(from, "x", true), plot.valToPos(to, "x", true)];
      const { top, height } = plot.bbox;
      ctx.save();
      ctx.globalCompositeOperation = "destination-over"; // beneath the lines
      ctx.fillStyle = colour(name);
      ctx.fillRect(left, top, right - left, height);
      ctx.restore();
      ctx.fillStyle = colour(edge);
      ctx.fillRect(left, top + height - 2 * ratio, right - left, 3 * ratio);
    },
    arrow(x, y, length, name) {
      const [px, py] = at(x, y);
      const reach = length * ratio;
      const head = Math.sign(length) * 5 * ratio;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour(name);
      ctx.lineWidth = 1.75 * ratio;
      ctx.beginPath();
      ctx.moveTo(px - reach / 2, py);
      ctx.lineTo(px + reach / 2 - head, py);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(px + reach / 2, py);
      ctx.lineTo(px + reach / 2 - 1.4 * head, py - 4 * ratio);
      ctx.lineTo(px + reach / 2 - 1.4 * head, py + 4 * ratio);
      ctx.fill();
      ctx.restore();
    },
  };
}
