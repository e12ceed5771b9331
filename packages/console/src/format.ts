const NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });
const PERCENT = new Intl.NumberFormat(undefined, {
  style: 'percent',
  maximumFractionDigits: 1,
  signDisplay: 'exceptZero',
});

/** A number as a person reads it; a dash where there is none. */
export function formatNumber(value: number | null): string {
  return value === null ? '–' : NUMBER.format(value);
}

/** By how much a value has changed: "new" where there was nothing before, a dash where it cannot be said. */
export function formatChange(value: number | null, before: number | null): string {
  if (value === null || before === null) return '–';
  if (before === 0) return value > 0 ? 'new' : '–';
  return PERCENT.format(value / before - 1);
}

/** Short names of points in time on an axis. */
const AXIS_FORMATS: Readonly<Record<string, Intl.DateTimeFormatOptions>> = {
  minute: { hour: '2-digit', minute: '2-digit' },
  hour: { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
  month: { year: 'numeric', month: 'short' },
};

/** Returns the function that names points in time on an axis, in its time zone. */
export function axisFormat(interval: string, timeZone: string): (time: Date) => string {
  const format = AXIS_FORMATS[interval] ?? { day: 'numeric', month: 'short' };
  const { format: name } = new Intl.DateTimeFormat(undefined, { ...format, timeZone });
  return name;
}

const BUCKET_FORMATS: Readonly<Record<string, Intl.DateTimeFormatOptions>> = {
  minute: { dateStyle: 'medium', timeStyle: 'short' },
  hour: { dateStyle: 'medium', timeStyle: 'short' },
  month: { year: 'numeric', month: 'long' },
};

/** The name of a bucket in its time zone. */
export function formatBucket(bucket: string, interval: string, timeZone: string): string {
  const format = BUCKET_FORMATS[interval] ?? { dateStyle: 'medium' };
  return new Intl.DateTimeFormat(undefined, { ...format, timeZone }).format(new Date(bucket));
}
