"""The questionnaire of [003] Appendix E: forms, filled forms and their scores."""
