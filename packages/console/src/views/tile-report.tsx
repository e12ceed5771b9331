import { type EventSeries, formatChange, formatNumber, toDouble, type View } from '../base/base.ts';
import {
  ChartDrawing,
  type DrawingProps,
  eventsHref,
  FunnelDrawing,
  formOf,
  type ReportBody,
  ReportNotes,
  RetentionDrawing,
  ValuesDrawing,
} from '../explore/explore.ts';
import { NumberLink } from '../parts/parts.ts';

interface TileReportProps extends DrawingProps<ReportBody> {
  readonly report: View['report'];
  /** How a series is drawn, if the view says so. */
  readonly form: string | null;
}

/** The numbers of a view, drawn as in Explore. */
export function TileReport({ report, form, ...drawing }: TileReportProps) {
  const { response } = drawing;
  switch (report) {
    case 'series':
      return <ChartTile {...drawing} form={form} />;
    case 'funnel':
      return (
        <>
          <ReportNotes {...response} />
          <FunnelDrawing {...drawing} />
        </>
      );
    case 'retention':
      return (
        <>
          <ReportNotes {...response} />
          <RetentionDrawing {...drawing} />
        </>
      );
    case 'values':
      return (
        <>
          <ReportNotes {...response} complete exact />
          <ValuesDrawing {...drawing} />
        </>
      );
  }
}

function ChartTile({ form, ...drawing }: DrawingProps<EventSeries> & Pick<TileReportProps, 'form'>) {
  const { response, params } = drawing;
  const { groupBy, previous } = response;
  const [total, before] = [toDouble(response.total), toDouble(previous?.total ?? null)];
  const isNumber = form === 'number';
  return (
    <>
      {!isNumber && (
        <p class="total">
          <strong>
            <NumberLink value={total} href={eventsHref(params, response)} />
          </strong>
          {previous && ` ${formatChange(total, before)}, before: ${formatNumber(before)}`}
        </p>
      )}
      <ReportNotes {...response} />
      <ChartDrawing {...drawing} form={formOf(form)} hasTotals={!isNumber && groupBy.length > 0} />
    </>
  );
}
