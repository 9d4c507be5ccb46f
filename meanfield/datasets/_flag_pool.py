"""The 28 stripe and triangle flags of [002] Appendix C, as the pool published with the paper names them."""

FLAG_POOL = """\
country,orientation,stripes,triangle
Armenia,horizontal,red blue orange,
Austria,horizontal,red white red,
Belgium,vertical,black yellow red,
Bulgaria,horizontal,white green red,
Chad,vertical,blue yellow red,
Cote d'Ivoire,vertical,orange white green,
Estonia,horizontal,blue black white,
France,vertical,blue white red,
Gabon,horizontal,green yellow blue,
Germany,horizontal,black red yellow,
Guinea,vertical,red yellow green,
Hungary,horizontal,red white green,
Ireland,vertical,green white orange,
Italy,vertical,green white red,
Lithuania,horizontal,yellow green red,
Luxembourg,horizontal,red white light_blue,
Mali,vertical,green yellow red,
Netherlands,horizontal,red white blue,
Nigeria,vertical,green white green,
Peru,vertical,red white red,
Russia,horizontal,white blue red,
Sierra Leone,horizontal,green white blue,
Ukraine,horizontal,blue yellow,
Yemen,horizontal,red white black,
Bahamas,horizontal,light_blue yellow light_blue,black
Czech Republic,horizontal,white red,blue
Palestine,horizontal,black white green,red
Sudan,horizontal,red white black,green
"""
