import { useEffect, useState } from 'preact/hooks';
import {
  type CountedSegment,
  formatCount,
  getJson,
  hrefOf,
  isPropertyName,
  request,
  type Segment,
  sendJson,
} from '../base/base.ts';
import {
  ConfirmButton,
  DocumentTable,
  LoadState,
  NumberLink,
  Problem,
  Time,
  useAction,
  useLoad,
} from '../parts/parts.ts';
import { type Definition, textOfSegment } from './definition.ts';
import { SegmentForm } from './segment-form.tsx';

const pathOf = (name: string) => `segments/${encodeURIComponent(name)}`;

/** Returns the address of who is in a segment. */
const hrefOfMembers = ({ name, of }: Segment) => hrefOf([of], new URLSearchParams({ segment: name }));

async function store(name: string, definition: Definition): Promise<void> {
  const response = await sendJson(pathOf(name), 'PUT', definition);
  // A body that nobody reads keeps its connection.
  await response.arrayBuffer();
}

/**
 * The segments of the workspace, and a form for a new one.
 *
 * @param params `of`, and the filters of a list of users or organizations, which the form begins with
 */
export function SegmentsPage({ params }: { readonly params: URLSearchParams }) {
  const { failure, act } = useAction();
  const loaded = useLoad('segments', (signal) => getJson<{ readonly segments: Segment[] }>('segments', signal));
  const segments = loaded.data?.segments;
  const initial: Definition = {
    of: params.get('of') === 'organizations' ? 'organizations' : 'users',
    filters: Object.fromEntries([...params].filter(([name]) => isPropertyName(name))),
    behaviour: [],
  };
  const create = (name: string, definition: () => Definition) =>
    act(async () => {
      if (segments?.some((one) => one.name === name)) {
        throw new Error(`There is a segment “${name}” already: choose another name, or open it below and change it.`);
      }
      await store(name, definition());
      location.hash = hrefOf(['segments', name]);
      return '';
    });
  return (
    <>
      <h1>Segments</h1>
      <p>
        A segment is a name for users or organizations, by what is known of them now and by what they did. Reports,
        lists and webhooks filter by it. It is computed whenever it is asked for.
      </p>
      <LoadState loaded={loaded} />
      {failure && <Problem error={failure} />}
      {segments && (
        <SegmentForm
          key={params.toString()}
          label="New segment"
          initial={initial}
          onSave={(name, definition) => void create(name, definition)}
        />
      )}
      {segments?.length === 0 && <p>There are no segments.</p>}
      {segments && segments.length > 0 && <SegmentTable segments={segments} />}
    </>
  );
}

function SegmentTable({ segments }: { readonly segments: readonly Segment[] }) {
  const counts = useCounts(segments);
  return (
    <DocumentTable label="Segments" columns={['Name', 'Who is in it', 'Members', 'Changed']}>
      {segments.map((segment) => (
        <tr key={segment.name}>
          <th scope="row">
            <a href={hrefOf(['segments', segment.name])}>{segment.name}</a>
          </th>
          <td class="text">
            <bdi>{textOfSegment(segment)}</bdi>
          </td>
          <td>
            {counts.has(segment.name) ? <Members segment={segment} count={counts.get(segment.name) ?? null} /> : '…'}
          </td>
          <td>
            <Time value={segment.changedAt} />
          </td>
        </tr>
      ))}
    </DocumentTable>
  );
}

/** Counts who is in segments, one after the other: each is a query over events. `null` is what took too long. */
function useCounts(segments: readonly Segment[]): ReadonlyMap<string, number | null> {
  const [counts, setCounts] = useState<ReadonlyMap<string, number | null>>(new Map());
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const run = async () => {
      for (const { name } of segments) {
        const counted = await getJson<CountedSegment>(pathOf(name), signal).catch(() => undefined);
        if (signal.aborted) return;
        setCounts((before) => new Map([...before, [name, counted?.count ?? null]]));
      }
    };
    void run();
    return () => controller.abort();
  }, [segments]);
  return counts;
}

/** A segment: how many are in it, where it leads, and a form that changes it. */
export function SegmentPage({ name }: { readonly name: string }) {
  const path = pathOf(name);
  const { count, outcome, failure, act } = useAction();
  const loaded = useLoad(`${path} ${count}`, (signal) => getJson<CountedSegment>(path, signal));
  const { data } = loaded;
  const change = (definition: () => Definition) =>
    act(async () => {
      await store(name, definition());
      return 'It is changed. The next read of every view that names it has what it is now.';
    });
  const remove = () =>
    act(async () => {
      await request(path, { method: 'DELETE' });
      location.hash = hrefOf(['segments']);
      return 'It is deleted.';
    });
  return (
    <>
      <h1>{name}</h1>
      <LoadState loaded={loaded} />
      {failure && <Problem error={failure} />}
      <p role="status">{outcome}</p>
      {data && (
        <>
          <p>
            <bdi>{textOfSegment(data)}</bdi>: <Members segment={data} count={data.count} />
          </p>
          <p class="bar">
            <a href={hrefOf(['events'], new URLSearchParams({ segment: name }))}>Their events</a>
            <a href={hrefOf(['explore'], new URLSearchParams({ segment: name }))}>Explore them</a>
            <a href={hrefOf(['explore'], new URLSearchParams({ 'segment[ne]': name }))}>Explore the rest</a>
          </p>
          <SegmentForm
            key={data.changedAt}
            label={`What ${name} is`}
            initial={data}
            name={name}
            onSave={(_, definition) => void change(definition)}
          />
          <p>
            <ConfirmButton
              label="Delete the segment"
              question="Delete it? Who is in it stays."
              confirm="Delete it"
              onConfirm={() => void remove()}
            />
          </p>
        </>
      )}
    </>
  );
}

/** How many are in a segment, which leads to them; a count of `null` took too long. */
function Members({ segment, count }: { readonly segment: Segment; readonly count: number | null }) {
  const { of } = segment;
  if (count === null) return <a href={hrefOfMembers(segment)}>too many to count in time; see the list</a>;
  const noun = of === 'users' ? 'user' : 'organization';
  return <NumberLink value={count} text={formatCount(count, noun)} href={hrefOfMembers(segment)} opens={of} />;
}
