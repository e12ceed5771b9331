import { Time } from '../parts/parts.ts';

interface ReportNotesProps {
  readonly startDate: string | null;
  readonly endDate: string | null;
  readonly timeZone?: string;
  readonly complete: boolean;
  readonly exact: boolean;
  /** What else there is to know of the range. */
  readonly note?: string;
}

/** Says which time the numbers are of, and where they are not all there is. */
export function ReportNotes({ startDate, endDate, timeZone, complete, exact, note = '' }: ReportNotesProps) {
  return (
    <>
      <p class="muted">
        {startDate !== null && <Time value={startDate} />} to {endDate === null ? 'now' : <Time value={endDate} />}
        {timeZone && `, ${timeZone}`}
        {note}
      </p>
      {!complete && (
        <p class="notice">
          <strong>Incomplete:</strong> the query ran out of time. Choose a shorter range, or add filters.
        </p>
      )}
      {!exact && (
        <p class="notice">
          <strong>Approximate:</strong> there are too many different values to count them exactly (error below 1 %).
        </p>
      )}
    </>
  );
}
