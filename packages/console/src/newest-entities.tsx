import { getJson, hrefOf, idOf, type OrganizationPage, type UserPage } from './base/base.ts';
import { LoadState, Time, useLoad } from './parts/parts.ts';

const NEWEST = 5;
const READ_EVERY_MS = 60_000;

interface NewestProps {
  readonly path: 'users' | 'organizations';
  readonly title: string;
}

/** The users or organizations that were seen first lately. */
export function NewestEntities({ path, title }: NewestProps) {
  const loaded = useLoad(
    path,
    (signal) =>
      getJson<UserPage | OrganizationPage>(
        `${path}?orderByField=firstSeenAt&orderByDirection=DESC&limit=${NEWEST}`,
        signal,
      ),
    READ_EVERY_MS,
  );
  const { data } = loaded;
  return (
    <section aria-labelledby={`newest-${path}`}>
      <h2 id={`newest-${path}`}>{title}</h2>
      <LoadState loaded={loaded} />
      {data?.results.length === 0 && <p class="muted">None.</p>}
      <ul class="members">
        {data?.results.map((entity) => {
          const id = idOf(entity);
          return (
            <li key={id}>
              <a href={hrefOf([path, id])}>{id}</a>
              <span class="muted">
                {' '}
                first seen <Time value={entity.firstSeenAt} />
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
