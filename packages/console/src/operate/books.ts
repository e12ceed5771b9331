import { type Audits, formatBucket, formatCount, formatNumber } from '../base/base.ts';
import type { Attention } from './attention.ts';

const DAY_HOURS = 24;
const DAY_MS = 86_400_000;

type DayBooks = Audits['books'][number];

/** What does not balance. */
type Differences = Readonly<Record<'missing' | 'invented' | 'duplicates', number>>;

const KINDS = ['events', 'changes', 'rejected'] as const;

/** Returns what does not balance in books of all kinds; `undefined` when everything does. */
function differencesIn(books: readonly DayBooks[]): Differences | undefined {
  const sum = (name: keyof Differences) =>
    books.reduce((all, day) => all + KINDS.reduce((ofDay, kind) => ofDay + day[kind][name], 0), 0);
  const found = { missing: sum('missing'), invented: sum('invented'), duplicates: sum('duplicates') };
  return found.missing + found.invented + found.duplicates > 0 ? found : undefined;
}

/** Says in a sentence what does not balance. */
function differencesText({ missing, invented, duplicates }: Differences): string {
  const found = [
    ...(missing > 0 ? [`${formatNumber(missing)} missing`] : []),
    ...(invented > 0 ? [`${formatNumber(invented)} that nobody submitted`] : []),
    ...(duplicates > 0 ? [`${formatNumber(duplicates)} stored twice`] : []),
  ];
  return `${missing + invented + duplicates === 1 ? 'Row that does' : 'Rows that do'} not balance: ${found.join(', ')}.`;
}

/** What the last audited day says of the events that were accepted. */
interface DayLine {
  readonly text: string;
  readonly isWell: boolean;
}

/**
 * Says what became of the events of the last day that was audited whole, or else of the last one of which some hours were; `undefined`
 * without books.
 */
export function lineOfDay({ books }: Audits, now: number): DayLine | undefined {
  const day = books.findLast(({ auditedHours }) => auditedHours === DAY_HOURS) ?? books.at(-1);
  if (!day) return undefined;
  const { accepted, unknown, givenUp } = day.events;
  const date = formatBucket(day.start, 'day', 'UTC');
  const isYesterday = Date.parse(day.start) === (Math.floor(now / DAY_MS) - 1) * DAY_MS;
  const isWhole = day.auditedHours === DAY_HOURS;
  const when = isWhole
    ? isYesterday
      ? 'yesterday'
      : `on ${date}`
    : `in ${formatCount(day.auditedHours, 'hour')} of ${date}`;
  const events = `${formatCount(accepted, 'event')} accepted ${when} (UTC)`;
  if (differencesIn([day])) return { text: `${events}; not all rows are accounted for.`, isWell: false };
  const lost = [
    ...(unknown > 0 ? [`of ${formatNumber(unknown)} nothing that is left says where they are`] : []),
    ...(givenUp > 0 ? [`${formatNumber(givenUp)} given up by the operator`] : []),
  ];
  return lost.length > 0
    ? { text: `${events}; ${lost.join(', ')}.`, isWell: false }
    : { text: `${events}, all accounted for.`, isWell: true };
}

/** Returns what has to be looked after of audits: that their books do not balance. */
export function auditAttention(audits: Audits | undefined): Attention[] {
  const differences = audits && differencesIn(audits.books);
  if (!differences) return [];
  return [
    {
      found: differencesText(differences),
      remedy:
        'Leave Kafka and the backups as they are, and read what the audit says of each row. It reads anew what it is told to.',
      command: 'sluice audit --since 24h',
    },
  ];
}
