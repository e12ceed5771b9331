import { gzipSync } from 'node:zlib';
import { seededRandom } from '../random.ts';
import { padded } from './body-door.ts';
import { type Door, type Doors, plainDoor } from './door.ts';
import { LIMITS, type LimitId } from './limits.ts';
import { below, FLAVOURS, NUMBERS, PRINTABLE, pick, type Random, textOf } from './texts.ts';

const service = 'ingest-api';

type Values = ReadonlyMap<LimitId, number>;

const AT = '2026-01-01T12:00:00.000Z';

/** How many properties of the user an event changes besides those of `$set`. */
const OTHER_CHANGES = 3;

/** An event with everything that the dialect has. */
function event(values: Values, random: Random): object {
  const flavour = pick(random, FLAVOURS);
  const text = (length: number, index = 0) => textOf(flavour, length, index);
  const count = (values.get('properties') ?? 6) - OTHER_CHANGES;
  const set = Object.fromEntries(Array.from({ length: count }, (_, index) => [`${text(20)}${index}`, index]));
  return {
    event: text(values.get('eventName') ?? 12),
    distinct_id: text(values.get('identifier') ?? 12),
    timestamp: AT,
    properties: {
      [text(100)]: text(below(random, 2_000)),
      $groups: { [text(5, 1)]: text(20), [text(5, 2)]: text(20), company: 'acme' },
      $set_once: { [text(20)]: Number(pick(random, NUMBERS)), 'first-seen': text(20) },
      $unset: [text(20, 3)],
    },
    $set: set,
  };
}

const REJECTED: readonly LimitId[] = ['eventName', 'identifier', 'properties'];

/** Batches whose key is in the body or in the query, compressed or as a form. */
function eventsDoor(path: string, bodyLimit: 'posthogEventBody' | 'bodyBytes', also: readonly string[] = []): Door {
  const paths = [path, ...also.map((route) => route.replace(/^\w+ /, ''))];
  return {
    limits: [...REJECTED, bodyLimit],
    also,
    build(values, seed) {
      const random = seededRandom(seed);
      const to = pick(random, paths);
      const length = values.has('properties') ? 1 : 1 + below(random, 20);
      const batch = Array.from({ length }, () => event(values, random));
      // The key takes the place of its name, which is shorter.
      const isKeyInBody = !values.has(bodyLimit) && random() < 0.3;
      const json = { ...(isKeyInBody && { api_key: '{key}' }), batch, sent_at: AT };
      const plain = padded(JSON.stringify(json), values.get(bodyLimit));
      const isForm = !isKeyInBody && !values.has(bodyLimit) && random() < 0.3;
      const isCompressed = !isKeyInBody && !isForm && random() < 0.5;
      const form = () => Buffer.from(`data=${encodeURIComponent(plain.toString('base64'))}`);
      const isTooLarge = plain.length > LIMITS[bodyLimit].max;
      const isRejected = REJECTED.some((limit) => (values.get(limit) ?? 0) > LIMITS[limit].max);
      return {
        request: {
          ...{ service, method: 'POST', path: isKeyInBody ? to : `${to}?token={key}` },
          headers: {
            authorization: '',
            'content-type': isForm ? 'application/x-www-form-urlencoded' : 'text/plain',
          },
          body: isForm ? form() : isCompressed ? gzipSync(plain) : plain,
        },
        expected: isTooLarge
          ? { statuses: [413], named: [['body_too_large']] }
          : { statuses: [200], named: isRejected ? [['invalid_call', 'too_large']] : [] },
      };
    },
  };
}

/** What needs the key in its path: one that is none is refused. */
function configDoor(path: string): Door {
  return {
    limits: [],
    build(_, seed) {
      const isKnown = seed % 2 === 0;
      const key = isKnown ? '{key}' : encodeURIComponent(textOf(pick(seededRandom(seed), PRINTABLE), 500));
      return {
        request: { service, method: 'GET', path: path.replace('{}', key), headers: { authorization: '' } },
        expected: isKnown ? { statuses: [200], named: [] } : { statuses: [401], named: [['invalid_api_key']] },
      };
    },
  };
}

function scriptDoor(path: string): Door {
  return {
    limits: [],
    build(_, seed) {
      const name = encodeURIComponent(textOf(pick(seededRandom(seed), PRINTABLE), 200));
      const request = { service, method: 'GET', path: path.replace('{}', `${name}.js`), headers: {} } as const;
      return { request, expected: { statuses: [200], named: [] } };
    },
  };
}

function flagsDoor(path: string): Door {
  return {
    limits: ['posthogEventBody'],
    build(values, seed) {
      const random = seededRandom(seed);
      const json = { distinct_id: textOf(pick(random, FLAVOURS), below(random, 5_000)), groups: {} };
      const body = padded(JSON.stringify(json), values.get('posthogEventBody'));
      const isOver = body.length > LIMITS.posthogEventBody.max;
      return {
        request: { service, method: 'POST', path: `${path}&token={key}`, headers: { authorization: '' }, body },
        expected: isOver ? { statuses: [413], named: [['body_too_large']] } : { statuses: [200], named: [['"flags"']] },
      };
    },
  };
}

const ask = (path: string) => plainDoor({ service, method: 'GET', path, headers: { authorization: '' } });

/** The routes of PostHog's clients. */
export const POSTHOG_DOORS: Doors = {
  'POST /e': eventsDoor('/e', 'posthogEventBody', ['POST /i/v0/e', 'POST /capture']),
  'POST /batch': eventsDoor('/batch', 'bodyBytes'),
  'POST /flags': flagsDoor('/flags?v=2'),
  'POST /decide': flagsDoor('/decide?v=3'),
  'GET /array/{key}/config': configDoor('/array/{}/config'),
  'GET /array/{key}/config.js': configDoor('/array/{}/config.js'),
  'GET /static/{file}': scriptDoor('/static/{}'),
  'GET /static/{version}/{file}': scriptDoor('/static/1.2.3/{}'),
  'GET /i/{version}/{kind}': ask('/i/v1/logs'),
  'GET /flags/{kind}': ask('/flags/definitions?send_cohorts&token={key}'),
  'GET /api/{kind}': ask('/api/surveys?token={key}'),
  'GET /api/{kind}/{part}': ask('/api/feature_flag/local_evaluation'),
};
