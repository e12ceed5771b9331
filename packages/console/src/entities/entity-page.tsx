import { useState } from 'preact/hooks';
import {
  ApiError,
  getJson,
  getRecords,
  hrefOf,
  idOf,
  type Organization,
  type OrganizationUserPage,
  type User,
  type UserOrganizationPage,
} from '../base/base.ts';
import { Leaf } from '../events/events.ts';
import { EntityLink, EntityName, LoadState, PageButtons, Scrollable, Time, useLoad, usePages } from '../parts/parts.ts';
import { DeleteUser } from './delete-user.tsx';
import { EntityActivity } from './entity-activity.tsx';
import { apiPathOf, ENTITY_KINDS, type EntityPath, type EntityProps, personParams } from './entity-kinds.ts';
import { EntityTimeline } from './entity-timeline.tsx';
import { Identities } from './identities.tsx';
import { Merges } from './merges.tsx';

interface EntityPageProps extends EntityProps {
  /** Filters of the timeline, those of `GET /events`, and `show`, the uuid of the event that is open beside it. */
  readonly params: URLSearchParams;
}

/** Names that a URL cannot have in its path: browsers resolve them, also where they are encoded. */
const UNADDRESSABLE: ReadonlySet<string> = new Set(['.', '..']);

/** A user or an organization as it is now, what it belongs to, what it has done, and its events by day. */
export function EntityPage({ path, id, params }: EntityPageProps) {
  const { noun, filter } = ENTITY_KINDS[path];
  const [isDeleted, setIsDeleted] = useState(false);
  const filters = new URLSearchParams({ [filter]: id, ...personParams(path) });
  return (
    <>
      <h1>
        <span class="muted">{noun}</span> <EntityName path={path} id={id} />
      </h1>
      {isDeleted ? (
        <p class="notice" role="status">
          The deletion was accepted. The user is hidden within seconds, and erased later. What is submitted from now on
          creates the user again. <a href={hrefOf(['users'])}>All users</a>
        </p>
      ) : (
        <>
          <p class="bar">
            <a href={hrefOf(['events'], filters)}>All events</a>
            <a href={hrefOf(['explore'], filters)}>Chart</a>
          </p>
          <Known path={path} id={id}>
            <EntityTimeline path={path} id={id} params={params} />
            {path === 'users' && <DeleteUser id={id} onDeleted={() => setIsDeleted(true)} />}
          </Known>
        </>
      )}
    </>
  );
}

interface KnownProps extends EntityProps {
  readonly children: preact.ComponentChildren;
}

/** What is known of a user or an organization before the children; in their place, that there is none. */
function Known(props: KnownProps) {
  const { path, id, children } = props;
  if (!UNADDRESSABLE.has(id)) return <StoredEntity {...props} />;
  return (
    <>
      <p class="notice">
        A browser cannot ask for what has the name “{id}”, since it means a folder in an address. Only{' '}
        {path === 'users' ? 'its events are shown, and it can be deleted' : 'its events are shown'}.
      </p>
      {children}
    </>
  );
}

function StoredEntity({ path, id, children }: KnownProps) {
  const entity = { path, id };
  const loaded = useLoad(apiPathOf(entity), (signal) =>
    getRecords<User | Organization>(`${apiPathOf(entity)}?propertyTimes=true`, signal),
  );
  const { data, error } = loaded;
  if (error instanceof ApiError && error.status === 404) return <Unknown path={path} message={error.message} />;
  return (
    <>
      <LoadState loaded={loaded} />
      {data && (
        <>
          <p>
            First seen <Time value={data.firstSeenAt} />, last seen <Time value={data.lastSeenAt} />.
          </p>
          <EntityProperties properties={data.properties} setAt={data.propertiesSetAt ?? {}} />
        </>
      )}
      <EntityMembers {...entity} />
      {path === 'users' && <Identities id={id} />}
      {data && path === 'users' && <Merges id={id} mergedInto={(data as User).mergedInto} />}
      <EntityActivity {...entity} />
      {children}
    </>
  );
}

function Unknown({ path, message }: { readonly path: EntityPath; readonly message: string }) {
  return (
    <>
      <div class="problem" role="alert">
        <p>{message}</p>
      </div>
      <p>It may be that</p>
      <ul>
        <li>the identifier is written in another way: large and small letters differ</li>
        <li>nothing with this identifier is stored yet: the page of the pipeline says how far that is</li>
        {path === 'users' && <li>the user was deleted</li>}
        <li>it belongs to another workspace than the key</li>
      </ul>
      <p class="bar">
        <a href={hrefOf([path])}>All {path}</a>
        <a href={hrefOf(['pipeline'])}>Pipeline</a>
      </p>
    </>
  );
}

interface EntityPropertiesProps {
  readonly properties: Readonly<Record<string, unknown>>;
  /** When each was set last. */
  readonly setAt: Readonly<Record<string, string>>;
}

/** The properties of a user or an organization. */
function EntityProperties({ properties, setAt }: EntityPropertiesProps) {
  const entries = Object.entries(properties);
  if (entries.length === 0) return <p class="muted">It has no properties.</p>;
  const times = new Map(Object.entries(setAt));
  return (
    <Scrollable label="Properties" kind="properties">
      <table class="totals">
        <caption>Properties</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            <th scope="col">Set last</th>
          </tr>
        </thead>
        <tbody>
          {entries.map(([name, value]) => {
            const time = times.get(name);
            return (
              <tr key={name}>
                <th scope="row">
                  <bdi>{name}</bdi>
                </th>
                <td>
                  <Leaf value={value} />
                </td>
                <td>{time !== undefined && <Time value={time} />}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scrollable>
  );
}

/** The organizations of a user, or the users of an organization, a page at a time. */
function EntityMembers(entity: EntityProps) {
  const { members, membersTitle } = ENTITY_KINDS[entity.path];
  const pages = usePages();
  const loaded = useLoad(pages.params.toString(), (signal) =>
    getJson<UserOrganizationPage | OrganizationUserPage>(`${apiPathOf(entity)}/${members}?${pages.params}`, signal),
  );
  const { data } = loaded;
  const number = pages.cursors.length + 1;
  return (
    <section aria-labelledby="members">
      <h2 id="members">{membersTitle}</h2>
      {data?.results.length === 0 && <p class="muted">None.</p>}
      <ul class="members-page">
        {data?.results.map((member) => (
          <li key={idOf(member)}>
            <EntityLink path={members} id={idOf(member)} />
            <span class="muted">
              last seen <Time value={member.lastSeenAt} />
            </span>
          </li>
        ))}
      </ul>
      <LoadState loaded={loaded} status={(number > 1 || !!data?.nextCursor) && `Page ${number}.`} />
      <PageButtons pages={pages} loaded={loaded} noun={members} />
    </section>
  );
}
