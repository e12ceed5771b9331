import {
  ApiError,
  calendar,
  type FunnelPeople,
  formatCount,
  getRecords,
  hrefOf,
  type RetentionPeople,
  without,
} from '../base/base.ts';
import {
  CopyButton,
  CsvButton,
  EntityLink,
  LoadState,
  PageLinks,
  Problem,
  RowList,
  Time,
  tableOf,
  useLoad,
} from '../parts/parts.ts';
import { ReportNotes } from './drawing.tsx';
import { PEOPLE, type PeopleReport, type PeopleTitle, peopleReportOf, reportOfPeople, titleOf } from './people.ts';

const LIMIT = '50';

type Body = FunnelPeople | RetentionPeople;

/** The people behind a number of a report: `report` says of which, the other parameters are those of the API. */
export function PeoplePage({ params }: { readonly params: URLSearchParams }) {
  const report = peopleReportOf(params);
  if (typeof report === 'string') return <People key={report} report={report} params={params} />;
  return (
    <>
      <h1>People</h1>
      <Problem error={new ApiError(400, 'The address has a parameter that cannot be used.', [report.fault])} />
    </>
  );
}

interface PeopleProps {
  readonly report: PeopleReport;
  readonly params: URLSearchParams;
}

function People({ report, params }: PeopleProps) {
  const title = titleOf(report, params, calendar.value);
  const query = new URLSearchParams([
    ...without(params, 'report'),
    ...(params.has('limit') ? [] : [['limit', LIMIT] as [string, string]]),
  ]);
  const loaded = useLoad(query.toString(), (signal) => getRecords<Body>(`${PEOPLE[report].path}?${query}`, signal));
  const { data } = loaded;
  const isPart = params.has('cursor') || typeof data?.nextCursor === 'string';
  return (
    <>
      <h1>
        {title.text}
        {title.event !== undefined && (
          <>
            : <bdi>{title.event}</bdi>
          </>
        )}
      </h1>
      {title.group !== undefined && (
        <p>
          Group: <bdi>{title.group}</bdi>
        </p>
      )}
      <p class="bar">
        <a href={hrefOf(['explore'], reportOfPeople(report, params))}>The report</a>
        <CopyButton label="Copy the link" textOf={() => location.href} />
      </p>
      <LoadState loaded={loaded} status={data?.complete && countText(data.results.length, title.path, isPart)} />
      {data && <Listed body={data} title={title} params={params} />}
    </>
  );
}

interface ListedProps {
  readonly body: Body;
  readonly title: PeopleTitle;
  readonly params: URLSearchParams;
}

function Listed({ body, title, params }: ListedProps) {
  const { path } = title;
  const { results, nextCursor } = body;
  return (
    <>
      <ReportNotes {...body} />
      {results.length > 0 && <PeopleTable title={title} results={results} />}
      <PageLinks path="people" label={`Pages of ${path}`} params={params} nextCursor={nextCursor} />
      {results.length > 0 && <CsvButton name={`These ${path}`} table={() => tableOf([...results])} />}
    </>
  );
}

function countText(count: number, path: string, isPart: boolean): string {
  if (count === 0) return isPart ? 'None on this page.' : 'Nobody.';
  return `${formatCount(count, path.slice(0, -1))}${isPart ? ' on this page' : ''}.`;
}

interface PeopleTableProps {
  readonly title: PeopleTitle;
  readonly results: Body['results'];
}

function PeopleTable({ title: { path, times }, results }: PeopleTableProps) {
  return (
    <RowList label="People">
      <table class="events">
        <caption>{path === 'users' ? 'Users' : 'Organizations'} by identifier</caption>
        <thead>
          <tr>
            <th scope="col">{path === 'users' ? 'User' : 'Organization'}</th>
            {times.map((time) => (
              <th key={time} scope="col">
                {time}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {results.map((person) => (
            <tr key={person.id}>
              <th scope="row">
                <EntityLink path={path} id={person.id} />
              </th>
              <td>
                <Time value={person.startedAt} />
              </td>
              {times.length > 1 && 'reachedAt' in person && (
                <td>
                  <Time value={person.reachedAt} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </RowList>
  );
}
