import { useState } from 'preact/hooks';
import {
  type Calendar,
  calendar,
  type Dashboard,
  type EventNames,
  getJson,
  hrefOf,
  joinList,
  request,
  sendJson,
  type View,
} from '../base/base.ts';
import { Combobox, valuesOf } from '../filters/filters.ts';
import { Problem } from '../parts/parts.ts';

/** The dashboards that can be made of what a workspace has. */
export const KINDS = {
  growth: 'Growth',
  activation: 'Activation',
  retention: 'Retention',
  organization: 'Health of an organization',
} as const;

export type Kind = keyof typeof KINDS;

type NewView = Pick<View, 'name' | 'report' | 'parameters'> & { readonly width: 1 | 2 };

interface Plan {
  readonly note: string;
  readonly views: readonly NewView[];
}

/** What somebody who signs up does is called so. */
const SIGN_UP = /sign.?(?:ed.?)?up|regist|account.?created|created?.?account|onboard/i;

/**
 * Returns the views of a dashboard.
 *
 * @param events the names of events, the most frequent first
 * @param organization whose health it is
 * @throws {Error} where there are too few events
 */
export function planOf(kind: Kind, events: readonly string[], organization: string): Plan {
  const signUp = events.find((name) => SIGN_UP.test(name)) ?? events[0];
  const use = events.find((name) => name !== signUp);
  if (signUp === undefined) throw new Error('There are no events yet to make a dashboard of.');
  const view = (name: string, parameters: View['parameters'], width: 1 | 2 = 1): NewView => {
    return { name, report: 'series', parameters, width };
  };
  if (kind === 'growth') {
    return {
      note: `How many there are, and how many come. Sign-ups are events “${signUp}”: open their view to choose another event.`,
      views: [
        view('Active users a week', { measure: 'users', interval: 'week', range: '90d', compare: 'previous' }, 2),
        view('Sign-ups', { event: signUp, range: '30d', form: 'number', compare: 'previous' }),
        view('Active organizations a week', { measure: 'organizations', interval: 'week', range: '90d' }),
        view('What is done', { groupBy: 'event', range: '30d', form: 'stacked' }, 2),
      ],
    };
  }
  if (kind === 'organization') {
    const own = { groupId: organization };
    return {
      note: `How much ${organization} uses the product: who, how often, and what.`,
      views: [
        view('Active users', { ...own, measure: 'users', range: '30d', form: 'number', compare: 'previous' }),
        view('Events a day', { ...own, range: '30d', form: 'bar' }, 2),
        view('What it does', { ...own, groupBy: 'event', interval: 'none', range: '30d' }),
        view('Who is active', { ...own, groupBy: 'userId', interval: 'none', range: '30d' }),
      ].map((one) => ({ ...one, name: `${one.name}: ${organization}`.slice(0, NAME_MAX) })),
    };
  }
  if (use === undefined) throw new Error('There is only one name of events yet: a second one is needed.');
  if (kind === 'activation') {
    const steps = joinList([signUp, use]);
    return {
      note: `Of those who begin with “${signUp}”, how many go on to “${use}”: open a view to choose other events.`,
      views: [
        { name: 'From beginning to use', report: 'funnel', parameters: { steps, range: '30d' }, width: 2 },
        view('Beginnings', { event: signUp, range: '30d', form: 'number', compare: 'previous' }),
        view('Users who use it', { event: use, measure: 'users', range: '30d', compare: 'previous' }, 2),
      ],
    };
  }
  const range = '90d';
  return {
    note: `Who comes back. New are those with an event “${signUp}”: open a view to choose other events.`,
    views: [
      { name: 'Users who come back', report: 'retention', parameters: { range }, width: 1 },
      { name: 'Organizations who come back', report: 'retention', parameters: { range, by: 'organization' }, width: 1 },
      {
        name: 'New users who use it',
        report: 'retention',
        parameters: { range, event: signUp, returnEvent: use },
        width: 2,
      },
    ],
  };
}

/** Characters of the name of a view at most. */
const NAME_MAX = 200;

/** Makes the views of a plan and a dashboard of them, or nothing at all. Returns its id. */
async function make(name: string, { note, views }: Plan, days: Calendar): Promise<string> {
  const made: string[] = [];
  try {
    for (const { name, report, parameters } of views) {
      const response = await sendJson('views', 'POST', { name, report, parameters: { ...days, ...parameters } });
      made.push(((await response.json()) as View).id);
    }
    const tiles = views.map(({ width }, index) => ({ view: made[index], width }));
    const body = { name: name.slice(0, NAME_MAX), tiles: [{ note, width: 1 }, ...tiles] };
    return ((await (await sendJson('dashboards', 'POST', body)).json()) as Dashboard).id;
  } catch (error) {
    await Promise.allSettled(made.map((id) => request(`views/${id}`, { method: 'DELETE' })));
    throw error;
  }
}

const suggestOrganizations = valuesOf('groupId');

/** Makes dashboards of the events that the workspace has. */
export function ReadyMade() {
  const [organization, setOrganization] = useState('');
  const [isMaking, setIsMaking] = useState(false);
  const [failure, setFailure] = useState<Error>();
  const act = async (kind: Kind) => {
    setFailure(undefined);
    setIsMaking(true);
    try {
      const { results } = await getJson<EventNames>('events/names', new AbortController().signal);
      const name = kind === 'organization' ? `${organization}: health` : KINDS[kind];
      const plan = planOf(kind, [...new Set(results.map(({ event }) => event))], organization);
      location.hash = hrefOf(['dashboards', await make(name, plan, calendar.value)]);
    } catch (error) {
      setFailure(error as Error);
      setIsMaking(false);
    }
  };
  const button = (kind: Kind, isReady = true) => (
    <button type="button" aria-disabled={isMaking || !isReady} onClick={() => !isMaking && isReady && void act(kind)}>
      {KINDS[kind]}
    </button>
  );
  return (
    <section aria-labelledby="ready-made">
      <h2 id="ready-made">Ready-made, of your own events</h2>
      <div class="name-form">
        {button('growth')}
        {button('activation')}
        {button('retention')}
      </div>
      <div class="name-form">
        <Combobox
          label="Organization"
          isLabelHidden
          placeholder="Organization"
          value={organization}
          suggest={suggestOrganizations}
          onChange={setOrganization}
        />
        {button('organization', organization.trim() !== '')}
      </div>
      {failure && <Problem error={failure} />}
    </section>
  );
}
