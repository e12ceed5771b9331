const NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });
const PERCENT = new Intl.NumberFormat(undefined, {
  style: 'percent',
  maximumFractionDigits: 1,
  signDisplay: 'exceptZero',
});

/** A number as a person reads it; a dash where there is none. */
export function formatNumber(value: number | null): string {
  return value === null ? '–' : withMinus(NUMBER.format(value));
}

/** Returns a formatted number with a minus that is as wide as a plus, in place of a hyphen. */
function withMinus(text: string): string {
  return text.replace('-', '\u2212');
}

const EXACT = new Intl.NumberFormat(undefined, { useGrouping: 'min2', maximumFractionDigits: 100 });

/** A number of JSON with all of its digits, in groups from five digits on: 2026 may be a year. */
export function formatExact(json: string): string {
  return /^-?\d+(\.\d+)?$/.test(json) ? EXACT.format(json as `${number}`) : json;
}

/** A number of things, as `2 events`. @param noun its plural ends with s */
export function formatCount(count: number, noun: string): string {
  return `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`;
}

const SHARE = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

/** A part of a whole in percent; a dash where there is none. */
export function formatShare(share: number | null): string {
  return share === null ? '–' : SHARE.format(share);
}

/** By how much a value has changed: "new" where there was nothing before, a dash where it cannot be said. */
export function formatChange(value: number | null, before: number | null): string {
  if (value === null || before === null) return '–';
  if (before === 0) return value > 0 ? 'new' : '–';
  return withMinus(PERCENT.format(value / before - 1));
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

const UNITS: readonly (readonly [name: string, seconds: number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

/** A time span in its largest unit of which it has two or more, in seconds else; a dash where there is none. */
export function formatDuration(seconds: number | null): string {
  if (seconds === null) return '–';
  const [unit, length] = UNITS.find(([, each]) => seconds >= 2 * each) ?? ['second', 1];
  return inUnit(seconds / length, unit, 'long');
}

const AGO = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });

/** A time is said by how long ago it was for so many seconds. */
const AGO_MAX = 7 * 86_400;

const AGO_UNITS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** How long ago a time was, as `12 min ago`; `undefined` for one of more than a week ago, or to come. In milliseconds since 1970. */
export function formatAgo(time: number, now: number): string | undefined {
  const seconds = (now - time) / 1_000;
  // The clock of whoever sent the time may be a little ahead.
  if (!(seconds > -60) || seconds >= AGO_MAX) return undefined;
  const [unit, length] = AGO_UNITS.find(([, each]) => seconds >= each) ?? ['second', 1];
  return AGO.format(-Math.max(0, Math.floor(seconds / length)), unit);
}

const BYTE_UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'];

/** Bytes in the unit that leaves one to three digits before the point. */
export function formatBytes(bytes: number): string {
  const power = Math.min(Math.max(0, Math.floor(Math.log10(bytes) / 3)), BYTE_UNITS.length - 1);
  // The short form of many bytes is that of one: "59 byte".
  return inUnit(bytes / 1_000 ** power, BYTE_UNITS[power] ?? 'byte', power === 0 ? 'long' : 'short');
}

function inUnit(value: number, unit: string, unitDisplay: 'long' | 'short'): string {
  return new Intl.NumberFormat(undefined, { style: 'unit', unit, unitDisplay, maximumFractionDigits: 1 }).format(value);
}
