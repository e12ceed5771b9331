import { ArgumentsError } from '@sluice/shared/config/command-line';
import { expect, test } from 'vitest';
import { NotAnswered, parse, requestsTo, runPropertiesCommand } from './properties-command.ts';

test('the arguments are a command, the names that it is about, and where query-api is', () => {
  expect(parse(['declare', 'plan', 'amount', 'plan', '--url', 'https://a.example/q/'])).toMatchObject({
    ...{ command: 'declare', names: ['plan', 'amount'], yes: false, key: undefined },
    url: new URL('https://a.example/q/'),
  });
  const wrong = [
    [],
    ['list', 'plan'],
    ['declare'],
    ['withdraw', '--all'],
    ['set', 'plan'],
    ['list', '--url', 'file:///'],
  ];
  for (const args of wrong) expect(() => parse(args), args.join(' ')).toThrow(ArgumentsError);
});

test('where query-api does not answer, the command says where it was looked for', async () => {
  const request = requestsTo(new URL('http://127.0.0.1:1/'), 'sk_x');
  const running = runPropertiesCommand(parse(['list']), request, { print: () => undefined, confirm: async () => true });
  await expect(running).rejects.toThrow(NotAnswered);
  await expect(running).rejects.toThrow('query-api at 127.0.0.1:1 does not answer');
});
