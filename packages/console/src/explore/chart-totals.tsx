import { type EventSeries, formatChange, formatNumber, toDouble } from '../base/base.ts';
import { type Line, Swatch } from '../charts/charts.ts';
import { NumberLink, Scrollable } from '../parts/parts.ts';
import { type DrawingProps, partName, ShareBar } from './drawing.tsx';
import { eventsHref, narrowedHref, type Valued } from './drill-down.ts';

interface ChartTotalsProps extends DrawingProps<EventSeries> {
  readonly lines: readonly Line[];
  readonly subject: string;
  readonly valuesOf: (line: Line) => Valued[];
  /** Whether a bar beside each total shows it. */
  readonly hasBars: boolean;
}

/** The legend of a chart with its totals. The name of a group filters by it, a number opens its events. */
export function ChartTotals({ response, lines, subject, params, title, valuesOf, hasBars }: ChartTotalsProps) {
  const { previous, startDate, endDate } = response;
  const range = { startDate, endDate };
  const isGrouped = response.groupBy.length > 0;
  const largest = Math.max(0, ...lines.map(({ total }) => total ?? 0));
  return (
    <Scrollable label={partName('Totals', title)}>
      <table class="totals">
        <caption>Totals of {subject}</caption>
        <thead>
          <tr>
            <th scope="col">Group</th>
            <th scope="col" class="number">
              Total
            </th>
            {previous && (
              <>
                <th scope="col" class="number">
                  <span class="swatch before" />
                  Before
                </th>
                <th scope="col" class="number">
                  Change
                </th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {lines.map((line, index) => {
            const isOther = isGrouped && line.group === undefined;
            return (
              <tr key={index}>
                <th scope="row">
                  <Swatch index={index} />
                  {isGrouped && !isOther ? (
                    <GroupLink line={line} href={narrowedHref(params, valuesOf(line))} />
                  ) : (
                    line.label
                  )}
                </th>
                <td class="number">
                  <NumberLink
                    value={line.total}
                    href={isOther ? undefined : eventsHref(params, range, valuesOf(line))}
                  />
                  {hasBars && largest > 0 && <ShareBar share={(line.total ?? 0) / largest} />}
                </td>
                {previous && <Before total={line.total} before={line.previous?.total ?? null} />}
              </tr>
            );
          })}
          <tr>
            <th scope="row">Total</th>
            <td class="number">
              <NumberLink value={toDouble(response.total)} href={eventsHref(params, range)} />
            </td>
            {previous && <Before total={toDouble(response.total)} before={toDouble(previous.total)} />}
          </tr>
        </tbody>
      </table>
    </Scrollable>
  );
}

function GroupLink({ line, href }: { readonly line: Line; readonly href: string | undefined }) {
  if (href === undefined) return <bdi>{line.label}</bdi>;
  return (
    <a href={href} title="Filter by this group">
      <bdi>{line.label}</bdi>
    </a>
  );
}

function Before({ total, before }: { readonly total: number | null; readonly before: number | null }) {
  return (
    <>
      <td class="number">{formatNumber(before)}</td>
      <td class="number">{formatChange(total, before)}</td>
    </>
  );
}
