import { useEffect, useRef } from 'preact/hooks';
import { access, hrefOf, key, route, useKey } from '../base/base.ts';

type Link = readonly [name: string, title: string];

/** What people look at every day. */
const LINKS: readonly Link[] = [
  ['home', 'Home'],
  ['events', 'Events'],
  ['explore', 'Explore'],
  ['dashboards', 'Dashboards'],
  ['views', 'Views'],
  ['users', 'Users'],
  ['organizations', 'Organizations'],
  ['segments', 'Segments'],
  ['sql', 'SQL'],
];

/** What is needed now and then, each group a menu. */
const GROUPS: readonly (readonly [title: string, links: readonly Link[]])[] = [
  [
    'Operate',
    [
      ['pipeline', 'Pipeline'],
      ['dead-letters', 'Dead letters'],
      ['webhooks', 'Webhooks'],
      ['keys', 'Keys'],
    ],
  ],
];

/** Pages that belong to another one, and addresses of older links, which go on working. */
const ALIASES: Readonly<Record<string, string>> = { chart: 'explore', people: 'explore' };

/** The links to all pages, and the button that signs out. */
export function Navigation() {
  const { path } = route.value;
  const [first = 'home'] = path;
  const current = ALIASES[first] ?? first;
  return (
    <>
      <nav aria-label="Pages">
        <ul>
          <Links links={LINKS} current={current} />
          {GROUPS.map(([title, links]) => (
            <li key={title}>
              <Menu title={title} links={links} current={current} page={path.join('/')} />
            </li>
          ))}
        </ul>
      </nav>
      <a href={hrefOf(['settings'])} aria-current={current === 'settings' ? 'page' : undefined}>
        Settings
      </a>
      <a href="../docs">API reference</a>
      <button type="button" onClick={() => signOut()}>
        {key.value === '' ? 'Use a key' : 'Sign out'}
      </button>
    </>
  );
}

interface LinksProps {
  readonly links: readonly Link[];
  readonly current: string;
}

function Links({ links, current }: LinksProps) {
  return links.map(([name, title]) => (
    <li key={name}>
      <a href={hrefOf([name])} aria-current={name === current ? 'page' : undefined}>
        {title}
      </a>
    </li>
  ));
}

interface MenuProps extends LinksProps {
  readonly title: string;
  /** The page that is shown. The menu closes when it changes. */
  readonly page: string;
}

/** Links behind a button. It closes with Escape, when the focus leaves it, and on the page that was chosen. */
function Menu({ title, links, current, page }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => menu.current?.removeAttribute('open');
  useEffect(close, [page]);
  return (
    <details
      class="menu"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !menu.current?.open) return;
        close();
        menu.current.querySelector('summary')?.focus();
      }}
      onFocusOut={({ relatedTarget }) => {
        if (relatedTarget instanceof Node && !menu.current?.contains(relatedTarget)) close();
      }}
    >
      <summary class={links.some(([name]) => name === current) ? 'current' : undefined}>{title}</summary>
      <ul>
        <Links links={links} current={current} />
      </ul>
    </details>
  );
}

function signOut(): void {
  useKey('');
  access.value = 'closed';
}
