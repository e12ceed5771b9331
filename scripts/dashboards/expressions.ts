/** Returns the rate of a counter, over the time that suits the resolution of the chart. */
export function rate(counter: string, labels = ''): string {
  const selector = labels === '' ? counter : `${counter}{${labels}}`;
  return `rate(${selector}[$__rate_interval])`;
}

/** Returns a percentile (0.95) of a histogram, by labels. */
export function percentile(share: number, histogram: string, by: readonly string[], labels = ''): string {
  const groups = ['le', ...by].join(', ');
  return `histogram_quantile(${share}, sum by (${groups}) (${rate(`${histogram}_bucket`, labels)}))`;
}
