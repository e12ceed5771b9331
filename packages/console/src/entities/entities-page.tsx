import { useState } from 'preact/hooks';
import {
  getRecords,
  hrefOf,
  idOf,
  isPropertyName,
  type Organization,
  type OrganizationPage,
  type User,
  type UserPage,
  without,
} from '../base/base.ts';
import { type FieldDescription, FilterForm } from '../filters/filters.ts';
import {
  type Column,
  CsvButton,
  EntityLink,
  ListTable,
  LoadState,
  PageLinks,
  PropertyLine,
  PropertyText,
  propertyColumns,
  propertyOfColumn,
  Time,
  tableOf,
  useLoad,
} from '../parts/parts.ts';

/** What the pages are called. */
const KINDS = {
  users: { title: 'Users', open: 'Open a user', of: 'user' },
  organizations: { title: 'Organizations', open: 'Open an organization', of: 'organization' },
} as const;

const FIELDS: readonly FieldDescription[] = [
  {
    name: 'orderByField',
    label: 'Order',
    options: [
      ['', 'Seen last'],
      ['firstSeenAt', 'Seen first'],
      ['id', 'Identifier'],
    ],
  },
];

const LIMIT = '50';

interface EntitiesProps {
  readonly path: keyof typeof KINDS;
  readonly params: URLSearchParams;
}

/** The users or the organizations that match the parameters of the address, which are those of `GET /users`. */
export function EntitiesPage({ path, params }: EntitiesProps) {
  const { title, open, of } = KINDS[path];
  const query = listParams(params);
  const loaded = useLoad(`${path} ${query}`, (signal) =>
    getRecords<UserPage | OrganizationPage>(`${path}?${query}`, signal),
  );
  const { data } = loaded;
  return (
    <>
      <h1>{title}</h1>
      <OpenForm path={path} label={open} />
      <FilterForm
        params={params}
        fields={FIELDS}
        of={of}
        onApply={(applied) => {
          location.hash = hrefOf([path], applied);
        }}
      />
      <p class="bar">
        <SegmentLink path={path} params={params} />
      </p>
      <LoadState loaded={loaded} status={data?.results.length === 0 && 'None match.'} />
      {data && data.results.length > 0 && <EntityTable path={path} title={title} results={data.results} />}
      <PageLinks path={path} label={`Pages of ${path}`} params={params} nextCursor={data?.nextCursor ?? null} />
      {data && data.results.length > 0 && <CsvButton name={`These ${path}`} table={() => tableOf([...data.results])} />}
    </>
  );
}

/** Leads to the segment that the list shows, or to a new one of what the list is filtered by. A segment names no other one. */
function SegmentLink({ path, params }: EntitiesProps) {
  if ([...params.keys()].some((param) => param.startsWith('segment['))) return null;
  const name = params.get('segment');
  if (name !== null) return <a href={hrefOf(['segments', name])}>The segment {name}</a>;
  const filters = [...params].filter(([param]) => isPropertyName(param));
  return <a href={hrefOf(['segments'], new URLSearchParams([['of', path], ...filters]))}>Save as segment</a>;
}

/** Returns the parameters of the API for those of the page: who was seen last comes first. */
function listParams(params: URLSearchParams): URLSearchParams {
  const query = without(params);
  if (!query.has('limit')) query.set('limit', LIMIT);
  if (!query.has('orderByField')) query.set('orderByField', 'lastSeenAt');
  if (!query.has('orderByDirection') && query.get('orderByField') !== 'id') query.set('orderByDirection', 'DESC');
  return query;
}

function OpenForm({ path, label }: { readonly path: EntitiesProps['path']; readonly label: string }) {
  const [id, setId] = useState('');
  return (
    <form
      class="bar"
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        if (id !== '') location.hash = hrefOf([path, id]);
      }}
    >
      <label>
        Identifier <input required value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
      </label>
      <button type="submit">Open</button>
    </form>
  );
}

interface EntityTableProps {
  readonly path: EntitiesProps['path'];
  readonly title: string;
  readonly results: readonly (User | Organization)[];
}

function EntityTable({ path, title, results }: EntityTableProps) {
  return (
    <ListTable
      list={path}
      caption={title}
      leading={[title.slice(0, -1)]}
      columns={columnsOf(results)}
      items={results}
      rowOf={(entity) => ({
        key: idOf(entity),
        leading: (
          <th scope="row">
            <EntityLink path={path} id={idOf(entity)} />
          </th>
        ),
      })}
      cellOf={(entity, column) => <EntityCell column={column} entity={entity} />}
    />
  );
}

/** Returns what a list can show besides who it is. Nobody's properties are no column. */
function columnsOf(results: EntityTableProps['results']): readonly Column[] {
  const properties = propertyColumns(results);
  return [
    { id: 'lastSeenAt', title: 'Last seen' },
    { id: 'firstSeenAt', title: 'First seen' },
    ...(properties.length > 0 ? [{ id: 'properties', title: 'Properties' }] : []),
    ...properties,
  ];
}

function EntityCell({ column, entity }: { readonly column: Column; readonly entity: User | Organization }) {
  const property = propertyOfColumn(column);
  if (property !== undefined) return <PropertyText value={entity.properties[property]} />;
  if (column.id === 'properties') return <PropertyLine properties={entity.properties} />;
  return <Time value={column.id === 'lastSeenAt' ? entity.lastSeenAt : entity.firstSeenAt} />;
}
