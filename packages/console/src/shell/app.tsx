import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { access, checkKey, key, type Route, route, useKey } from '../base/base.ts';
import { EntitiesPage, EntityPage } from '../entities/entities.ts';
import { EventsPage } from '../events/events.ts';
import { ExplorePage, PeoplePage } from '../explore/explore.ts';
import {
  AlertPage,
  AlertsPage,
  DeadLetterPage,
  DeadLettersPage,
  DigestPage,
  HealthPage,
  KeysPage,
  WebhookPage,
  WebhooksPage,
} from '../operate/operate.ts';
import { HomePage, SettingsPage } from '../pages/pages.ts';
import { ErrorBoundary, nameOfEntity, Problem } from '../parts/parts.ts';
import { SearchDialog } from '../search/search.ts';
import { SegmentPage, SegmentsPage } from '../segments/segments.ts';
import { SqlPage } from '../sql/sql.ts';
import { DashboardPage, DashboardsPage, linkOf, ViewsPage, WallPage } from '../views/views.ts';
import { actions, Navigation, PAGES } from './navigation.tsx';
import { Shortcuts } from './shortcuts.tsx';

interface PageDescription {
  readonly title: string;
  readonly content: preact.ComponentChild;
}

function pageOf({ path: [name = 'home', id = ''], params }: Route): PageDescription {
  switch (name) {
    case 'home':
      return { title: 'Home', content: <HomePage /> };
    case 'events':
      return { title: 'Events', content: <EventsPage params={params} /> };
    case 'explore':
    case 'chart':
      return { title: 'Explore', content: <ExplorePage params={params} /> };
    case 'people':
      return { title: 'People', content: <PeoplePage params={params} /> };
    case 'views':
      return { title: 'Views', content: <ViewsPage /> };
    case 'dashboards':
      if (id !== '') return { title: 'Dashboard', content: <DashboardPage key={id} id={id} /> };
      return { title: 'Dashboards', content: <DashboardsPage /> };
    case 'segments':
      if (id !== '') return { title: id, content: <SegmentPage key={id} name={id} /> };
      return { title: 'Segments', content: <SegmentsPage params={params} /> };
    case 'sql':
      return { title: 'SQL', content: <SqlPage params={params} /> };
    case 'webhooks':
      if (id !== '') return { title: 'Webhook', content: <WebhookPage key={id} id={id} /> };
      return { title: 'Webhooks', content: <WebhooksPage /> };
    case 'alerts':
      if (id !== '') return { title: 'Alert', content: <AlertPage key={id} id={id} /> };
      return { title: 'Alerts', content: <AlertsPage params={params} /> };
    case 'digests':
      if (id !== '') return { title: 'Digest', content: <DigestPage key={id} id={id} /> };
      return { title: 'Alerts', content: <AlertsPage params={params} /> };
    case 'keys':
      return { title: 'Keys', content: <KeysPage /> };
    case 'dead-letters':
      if (id !== '') return { title: 'Dead letter', content: <DeadLetterPage key={id} id={id} /> };
      return { title: 'Dead letters', content: <DeadLettersPage params={params} /> };
    case 'pipeline':
      return { title: 'Pipeline', content: <HealthPage /> };
    case 'settings':
      return { title: 'Settings', content: <SettingsPage /> };
    case 'users':
    case 'organizations':
      if (id === '') {
        return {
          title: name === 'users' ? 'Users' : 'Organizations',
          content: <EntitiesPage key={name} path={name} params={params} />,
        };
      }
      return {
        title: titleOfEntity(name, id),
        content: <EntityPage key={`${name}/${id}`} path={name} id={id} params={params} />,
      };
  }
  return { title: 'Not found', content: <h1>There is no such page</h1> };
}

function titleOfEntity(path: 'users' | 'organizations', id: string): string {
  const { name, email } = nameOfEntity(path, id) ?? {};
  return name ?? email ?? id;
}

/** The page names it by its content. */
const MARK = document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.href ?? '';

/** The whole console, or the dashboard alone that a link of it has opened. */
export function App() {
  const link = linkOf(route.value);
  return link ? <WallPage key={link.key} link={link} /> : <Console />;
}

/** The navigation and the page that the address names, or the form for a key. */
function Console() {
  const main = useRef<HTMLElement>(null);
  // Each opening of the search has its own number: the next one can come before a browser tells that the last one is closed.
  const [searches, setSearches] = useState({ last: 0, isOpen: false });
  const search = useCallback(() => setSearches(({ last }) => ({ last: last + 1, isOpen: true })), []);
  const closeSearch = (closed: number) =>
    setSearches((current) => (current.last === closed ? { ...current, isOpen: false } : current));
  const isOpen = access.value === 'open';
  const { title, content } = isOpen ? pageOf(route.value) : { title: 'Sign in', content: <SignIn /> };
  useEffect(() => {
    if (access.value === 'checking') void openWith(key.value);
  }, []);
  useEffect(() => {
    document.title = `${title} · Sluice`;
  }, [title]);
  const page = `${isOpen} ${route.value.path.join('/')}`;
  const shown = useRef(page);
  // At once: an effect after the next frame would take the focus from what a quick user has reached by then.
  useLayoutEffect(() => {
    if (shown.current === page) return;
    shown.current = page;
    // What had the focus is gone.
    main.current?.focus();
    scrollTo(0, 0);
  }, [page]);
  return (
    <>
      <header>
        <button type="button" class="skip" onClick={() => main.current?.focus()}>
          Skip to the content
        </button>
        <a class="brand" href="#/home">
          <img src={MARK} alt="" width="22" height="22" />
          Sluice
        </a>
        {isOpen && <Navigation onSearch={search} />}
      </header>
      <main id="main" tabIndex={-1} ref={main}>
        {access.value !== 'checking' && (
          <ErrorBoundary subject={`${page}?${route.value.params}`}>{content}</ErrorBoundary>
        )}
      </main>
      {isOpen && <Shortcuts onSearch={search} />}
      {isOpen && searches.isOpen && (
        <SearchDialog
          key={searches.last}
          pages={PAGES}
          actions={actions()}
          onClose={() => closeSearch(searches.last)}
        />
      )}
    </>
  );
}

/** Opens the console if a key may read. An empty one may, too, where an operator lets everybody read a workspace. */
async function openWith(candidate: string): Promise<void> {
  try {
    await checkKey(candidate);
    access.value = 'open';
  } catch {
    access.value = 'closed';
  }
}

/** Asks for a key. The form is never sent: a script reads it. */
function SignIn() {
  const [error, setError] = useState<Error>();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const candidate = String(new FormData(event.currentTarget as HTMLFormElement).get('key')).trim();
    try {
      await checkKey(candidate);
      useKey(candidate);
      access.value = 'open';
    } catch (failure) {
      setError(failure as Error);
    }
  };
  return (
    <section class="sign-in">
      <h1>Sign in</h1>
      <p id="key-hint">
        The console reads with an API key of the scope <code>query</code>. It is kept until this tab is closed.
      </p>
      <form onSubmit={submit}>
        <label for="key">API key</label>
        <input id="key" name="key" type="password" autocomplete="off" aria-describedby="key-hint" required />
        <button type="submit">Sign in</button>
      </form>
      {error && <Problem error={error} />}
    </section>
  );
}
