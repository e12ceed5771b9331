import {
  calendar,
  type Funnel,
  formatDuration,
  formatNumber,
  formatShare,
  isPropertyName,
  labelOfName,
} from '../base/base.ts';
import { labelOfKey } from '../charts/charts.ts';
import { stepOf } from '../filters/filters.ts';
import { CsvButton, NumberLink, Scrollable, type Table } from '../parts/parts.ts';
import { type DrawingProps, EmptyHint, partName, ReportNotes, ShareBar } from './drawing.tsx';
import { eventsHref, narrowedHref } from './drill-down.ts';
import { FunnelColumns } from './funnel-columns.tsx';
import { peopleHref, whoOf } from './people.ts';

type Step = Funnel['steps'][number];

interface FunnelReportProps {
  readonly response: Funnel;
  readonly params: URLSearchParams;
}

/** How many got to each step, by group. */
export function FunnelReport({ response, params }: FunnelReportProps) {
  const { steps, groups = [], groupBy } = response;
  const [first, last] = [steps[0]?.count ?? null, steps.at(-1)?.count ?? null];
  return (
    <>
      <p role="status">
        {first !== null && last !== null && `${formatNumber(last)} of ${formatNumber(first)} went all the way.`}
      </p>
      <ReportNotes {...response} />
      <FunnelDrawing response={response} params={params} />
      <p class="bar">
        <CsvButton name="Funnel" table={() => tableOf(steps, groups, groupBy.map(labelOfName))} />
        <span class="muted">A number opens the {whoOf(params).toLowerCase()}, a name the events of the step.</span>
      </p>
    </>
  );
}

/** The steps of a funnel with bars, and its groups. */
export function FunnelDrawing(props: DrawingProps<Funnel>) {
  const { response, params } = props;
  const [first] = response.steps;
  const who = params ? whoOf(params) : 'Completed';
  return (
    <>
      {first?.count === 0 && <EmptyHint params={params && paramsOfStep(params, 1, first.event)} />}
      {first?.count ? <FunnelColumns {...{ response, who }} title={props.title} /> : null}
      <StepTable {...props} who={who} />
      {response.groupBy.length > 0 && <GroupTable {...props} who={who} />}
    </>
  );
}

/** Returns the parameters of the events of one step. */
function paramsOfStep(params: URLSearchParams, step: number, event: string): URLSearchParams {
  const own = [...params].flatMap(([name, value]): [string, string][] => {
    const found = stepOf(name);
    if (found.step === undefined) return name === 'event' ? [] : [[name, value]];
    return found.step === step ? [[found.name, value]] : [];
  });
  return new URLSearchParams([...own, ['event', event]]);
}

interface StepTableProps extends DrawingProps<Funnel> {
  readonly who: string;
}

function StepTable({ response, params, title, who }: StepTableProps) {
  const { steps } = response;
  const first = steps[0]?.count ?? null;
  return (
    <Scrollable label={partName('Steps', title)}>
      <table class="totals funnel">
        <caption>{who} at each step</caption>
        <thead>
          <tr>
            {['Step', who, 'Of the first', 'Of the step before', 'Dropped out', 'Median time'].map((column, index) => (
              <th key={column} scope="col" class={index > 0 ? 'number' : undefined}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {steps.map(({ event, count, medianSecondsFromPrevious }, index) => {
            const before = steps[index - 1]?.count ?? null;
            return (
              <tr key={index}>
                <th scope="row">
                  {index + 1}. <StepName {...{ response, params, index, event }} />
                  <ShareBar share={shareOf(count, first) ?? 0} />
                </th>
                <td class="number">
                  <PeopleLink {...{ response, params, index }} value={count} />
                </td>
                <td class="number">{formatShare(shareOf(count, first))}</td>
                <td class="number">{index === 0 ? '' : formatShare(shareOf(count, before))}</td>
                <td class="number">
                  {index > 0 && (
                    <PeopleLink {...{ response, params, index }} value={droppedOf(before, count)} isDropped />
                  )}
                </td>
                <td class="number">{index === 0 ? '' : formatDuration(medianSecondsFromPrevious)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scrollable>
  );
}

interface StepNameProps extends DrawingProps<Funnel> {
  readonly event: string;
  /** The place of the step, from 0. */
  readonly index: number;
}

/** The name of a step, which opens its events. */
function StepName({ response, params, event, index }: StepNameProps) {
  const name = <bdi>{event}</bdi>;
  const href = eventsHref(params && paramsOfStep(params, index + 1, event), response);
  return href === undefined ? name : <a href={href}>{name}</a>;
}

interface PeopleLinkProps extends DrawingProps<Funnel> {
  readonly value: number | null;
  /** The place of the step, from 0. */
  readonly index: number;
  /** Whether it counts those who dropped out before the step. */
  readonly isDropped?: boolean;
  /** The key of their group. Default: of all groups. */
  readonly group?: unknown;
}

/** A number of people at a step, which opens who they are. */
function PeopleLink({ response, params, value, index, isDropped = false, group }: PeopleLinkProps) {
  const { startDate, endDate } = response;
  const href = peopleHref('funnel', params, calendar.value, {
    ...{ startDate, endDate, step: String(index + 1) },
    ...(isDropped && { dropped: 'true' }),
    ...(group !== undefined && { group: JSON.stringify(group) }),
  });
  return <NumberLink value={value} href={href} opens={params ? whoOf(params).toLowerCase() : ''} />;
}

function droppedOf(before: number | null, count: number | null): number | null {
  return before === null || count === null ? null : before - count;
}

function GroupTable({ response, params, title, who }: StepTableProps) {
  const { steps, groups = [], groupBy } = response;
  const [name = ''] = groupBy;
  return (
    <Scrollable label={partName('Groups', title)}>
      <table class="numbers">
        <caption>
          {who} at each step, by {labelOfName(name)}; of each group, the share that got there
        </caption>
        <thead>
          <tr>
            <th scope="col">{labelOfName(name)}</th>
            {steps.map(({ event }, index) => (
              <th key={index} scope="col" class="number">
                {index + 1}. <bdi>{event}</bdi>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {groups.map(({ group: [key], steps: own }, row) => {
            // The group is that of the first step.
            const href = narrowedHref(params, [[`step1.${name}`, key]]);
            return (
              <tr key={row}>
                <th scope="row">
                  <bdi>{isPropertyName(name) && href ? <a href={href}>{labelOfKey(key)}</a> : labelOfKey(key)}</bdi>
                </th>
                {own.map(({ count }, index) => (
                  <td key={index} class="number">
                    <PeopleLink {...{ response, params, index }} value={count} group={key} />
                    {index > 0 && ` (${formatShare(shareOf(count, own[0]?.count ?? null))})`}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scrollable>
  );
}

function shareOf(count: number | null, whole: number | null): number | null {
  return count === null || whole === null || whole === 0 ? null : count / whole;
}

function tableOf(steps: readonly Step[], groups: NonNullable<Funnel['groups']>, groupBy: readonly string[]): Table {
  const rowsOf = (group: readonly string[], of: readonly Step[]) =>
    of.map((step, index) => [...group, index + 1, step.event, step.count, step.medianSecondsFromPrevious]);
  const all = groupBy.map(() => 'All');
  return {
    columns: [...groupBy, 'Step', 'Event', 'Count', 'Median seconds'],
    rows: [...rowsOf(all, steps), ...groups.flatMap(({ group, steps: own }) => rowsOf(group.map(labelOfKey), own))],
  };
}
