// Series of numbers over time, drawn and as tables.

export { partialBuckets, timeOfBuckets } from './buckets.ts';
export { Legend, Swatch, strokeOf, useHiding } from './legend.tsx';
export { type GroupKey, type Line, labelOfKey, linesOf, seriesParams } from './series.ts';
export { SeriesChart } from './series-chart.tsx';
export { SeriesTable } from './series-table.tsx';
export { SmallCharts } from './small-charts.tsx';
