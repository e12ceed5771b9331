import * as conventions from '@opentelemetry/semantic-conventions/incubating';
import { expect, test } from 'vitest';
import { ATTRIBUTE } from './tracer.ts';

test('every name is one of the semantic conventions', () => {
  const names = Object.values(conventions).filter((name) => typeof name === 'string');
  const header = conventions.ATTR_HTTP_RESPONSE_HEADER('x-request-id');
  expect([...names, header]).toEqual(expect.arrayContaining(Object.values(ATTRIBUTE)));
});
