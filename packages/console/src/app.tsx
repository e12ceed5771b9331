import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { checkKey } from './api.ts';
import { ChartPage } from './chart-page.tsx';
import { deferred } from './deferred.tsx';
import { EntitiesPage } from './entities-page.tsx';
import { EntityPage } from './entity-page.tsx';
import { ErrorBoundary } from './error-boundary.tsx';
import { EventsPage } from './events-page.tsx';
import { HealthPage } from './health-page.tsx';
import { HomePage } from './home-page.tsx';
import { loadMenus } from './menus.ts';
import { hrefOf, type Route, route } from './route.ts';
import { access, key, useKey } from './session.ts';
import { SignIn } from './sign-in.tsx';
import { SqlPage } from './sql-page.tsx';
import { linkOf } from './views/link.ts';
import { ViewsPage } from './views/views-page.tsx';
import { WebhookPage } from './webhook-page.tsx';
import { WebhooksPage } from './webhooks-page.tsx';

const loadDashboards = () => import('./views/dashboard-pages.ts');
const DashboardsPage = deferred(() => loadDashboards().then((pages) => pages.DashboardsPage));
const DashboardPage = deferred(() => loadDashboards().then((pages) => pages.DashboardPage));
const WallPage = deferred(() => loadDashboards().then((pages) => pages.WallPage));

interface PageDescription {
  readonly title: string;
  readonly content: preact.ComponentChild;
}

const LINKS = [
  ['home', 'Home'],
  ['events', 'Events'],
  ['chart', 'Chart'],
  ['dashboards', 'Dashboards'],
  ['views', 'Views'],
  ['users', 'Users'],
  ['organizations', 'Organizations'],
  ['sql', 'SQL'],
  ['webhooks', 'Webhooks'],
  ['pipeline', 'Pipeline'],
] as const;

function pageOf({ path: [name = 'home', id = ''], params }: Route): PageDescription {
  switch (name) {
    case 'home':
      return { title: 'Home', content: <HomePage /> };
    case 'events':
      return { title: 'Events', content: <EventsPage params={params} /> };
    case 'explore':
    case 'chart':
      return { title: 'Chart', content: <ChartPage params={params} /> };
    case 'views':
      return { title: 'Views', content: <ViewsPage /> };
    case 'dashboards':
      if (id !== '') return { title: 'Dashboard', content: <DashboardPage key={id} id={id} /> };
      return { title: 'Dashboards', content: <DashboardsPage /> };
    case 'sql':
      return { title: 'SQL', content: <SqlPage params={params} /> };
    case 'webhooks':
      if (id !== '') return { title: 'Webhook', content: <WebhookPage key={id} id={id} /> };
      return { title: 'Webhooks', content: <WebhooksPage /> };
    case 'pipeline':
      return { title: 'Pipeline', content: <HealthPage /> };
    case 'users':
    case 'organizations':
      if (id === '') {
        return {
          title: name === 'users' ? 'Users' : 'Organizations',
          content: <EntitiesPage key={name} path={name} params={params} />,
        };
      }
      return { title: id, content: <EntityPage key={`${name}/${id}`} path={name} id={id} /> };
  }
  return { title: 'Not found', content: <h1>There is no such page</h1> };
}

/** The whole console, or the dashboard alone that a link of it has opened. */
export function App() {
  const link = linkOf(route.value);
  return link ? <WallPage key={link.key} link={link} /> : <Console />;
}

/** Its navigation, and the page that the address names, or the form for a key. */
function Console() {
  const main = useRef<HTMLElement>(null);
  const isOpen = access.value === 'open';
  const { title, content } = isOpen ? pageOf(route.value) : { title: 'Sign in', content: <SignIn /> };
  useEffect(() => {
    if (access.value === 'checking') void openWith(key.value);
  }, []);
  useEffect(() => {
    if (!isOpen) return;
    const controller = new AbortController();
    void loadMenus(controller.signal);
    return () => controller.abort();
  }, [isOpen]);
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
          Sluice
        </a>
        {isOpen && <Navigation />}
      </header>
      <main id="main" tabIndex={-1} ref={main}>
        {access.value !== 'checking' && (
          <ErrorBoundary subject={`${page}?${route.value.params}`}>{content}</ErrorBoundary>
        )}
      </main>
    </>
  );
}

function Navigation() {
  const [current = 'home'] = route.value.path;
  return (
    <>
      <nav aria-label="Pages">
        <ul>
          {LINKS.map(([name, title]) => (
            <li key={name}>
              <a href={hrefOf([name])} aria-current={name === current ? 'page' : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <a href="../docs">API reference</a>
      <button type="button" onClick={() => signOut()}>
        {key.value === '' ? 'Use a key' : 'Sign out'}
      </button>
    </>
  );
}

function signOut(): void {
  useKey('');
  access.value = 'closed';
}

/** Without a key too: an operator may let everybody read a workspace. */
async function openWith(candidate: string): Promise<void> {
  try {
    await checkKey(candidate);
    access.value = 'open';
  } catch {
    access.value = 'closed';
  }
}
