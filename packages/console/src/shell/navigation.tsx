import { BookOpen, LogIn, LogOut, Menu as MenuIcon, Monitor, Moon, Search, Settings, Sun } from 'lucide';
import { useEffect, useRef, useState } from 'preact/hooks';
import { access, changeSettings, hrefOf, key, route, settings, THEMES, useKey } from '../base/base.ts';
import { Icon } from '../parts/parts.ts';
import type { SearchEntry } from '../search/search.ts';

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
      ['alerts', 'Alerts'],
      ['webhooks', 'Webhooks'],
      ['keys', 'Keys'],
    ],
  ],
];

/** All pages. */
export const PAGES: readonly Link[] = [...LINKS, ...GROUPS.flatMap(([, links]) => links), ['settings', 'Settings']];

/** Pages that belong to another one, and addresses of older links, which go on working. */
const ALIASES: Readonly<Record<string, string>> = { chart: 'explore', people: 'explore', digests: 'alerts' };

/** The links to all pages, which a phone shows behind a button, and what belongs to the person. */
export function Navigation({ onSearch }: { readonly onSearch: () => void }) {
  const { path } = route.value;
  const [first = 'home'] = path;
  const current = ALIASES[first] ?? first;
  const page = path.join('/');
  const [isOpen, setIsOpen] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => setIsOpen(false), [page]);
  return (
    <>
      <nav
        aria-label="Pages"
        class={isOpen ? 'open' : undefined}
        onKeyDown={(event) => {
          if (event.key !== 'Escape' || event.defaultPrevented || !isOpen) return;
          setIsOpen(false);
          opener.current?.focus();
        }}
        onFocusOut={({ relatedTarget, currentTarget }) => {
          if (relatedTarget instanceof Node && !currentTarget.contains(relatedTarget)) setIsOpen(false);
        }}
      >
        <button
          type="button"
          class="quiet pages"
          ref={opener}
          aria-expanded={isOpen}
          aria-controls="pages"
          onClick={() => setIsOpen(!isOpen)}
        >
          <Icon of={MenuIcon} /> Menu
        </button>
        <ul id="pages">
          <Links links={LINKS} current={current} />
          {GROUPS.map(([title, links]) => (
            <li key={title}>
              <Menu title={title} links={links} current={current} page={page} />
            </li>
          ))}
        </ul>
      </nav>
      <div class="tools">
        <button type="button" class="quiet" aria-label="Search" title="Search (Ctrl K)" onClick={onSearch}>
          <Icon of={Search} />
        </button>
        <ThemeButton />
        <a
          class="quiet"
          href={hrefOf(['settings'])}
          aria-label="Settings"
          title="Settings"
          aria-current={current === 'settings' ? 'page' : undefined}
        >
          <Icon of={Settings} />
        </a>
        <a class="quiet" href="../docs" aria-label="API reference" title="API reference">
          <Icon of={BookOpen} />
        </a>
        <SignOutButton />
      </div>
    </>
  );
}

/** What can be done from every page, for the search. */
export function actions(): readonly SearchEntry[] {
  const action = (text: string, note: string, run: () => void) => ({ heading: 'Actions', text, note, run });
  return [
    ...THEMES.map((theme) => action(`Theme: ${theme}`, 'colors', () => changeSettings({ theme }))),
    action(signOutName(), '', signOut),
  ];
}

function signOutName(): string {
  return key.value === '' ? 'Use a key' : 'Sign out';
}

function SignOutButton() {
  const name = signOutName();
  return (
    <button type="button" class="quiet" aria-label={name} title={name} onClick={() => signOut()}>
      <Icon of={key.value === '' ? LogIn : LogOut} />
    </button>
  );
}

const THEME_ICONS = { system: Monitor, light: Sun, dark: Moon };

/** Goes to the next of the themes. */
function ThemeButton() {
  const { theme } = settings.value;
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
  const name = `Theme: ${theme}. Change to ${next}`;
  return (
    <button type="button" class="quiet" aria-label={name} title={name} onClick={() => changeSettings({ theme: next })}>
      <Icon of={THEME_ICONS[theme]} />
    </button>
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
        // The pages of a phone stay open around it.
        event.preventDefault();
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
