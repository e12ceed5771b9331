import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dnsServer } from '../config.ts';
import { type DnsAnswer, DnsServer } from '../testing/dns-server.ts';
import { ReceiverNames } from './receiver-names.ts';

const never = new AbortController().signal;
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-names-'));
});
afterAll(() => rm(folder, { recursive: true }));

interface System {
  readonly hosts?: string;
  readonly resolvConf?: string;
}

/** Returns names that are looked up with these files, at one DNS server. */
async function namesOf({ address }: DnsServer, { hosts = '', resolvConf = '' }: System = {}): Promise<ReceiverNames> {
  const [hostsFile, conf] = [join(folder, crypto.randomUUID()), join(folder, crypto.randomUUID())];
  await writeFile(hostsFile, hosts);
  await writeFile(conf, resolvConf);
  return new ReceiverNames({ servers: [address], hostsFile, resolvConf: conf });
}

const addresses = async (names: ReceiverNames, name: string) =>
  (await names.find(name, never)).map(({ address, family }) => [address, family]);

const knowing = (known: Readonly<Record<string, DnsAnswer>>) => DnsServer.start((name) => known[name] ?? 'unknown');

test('a name has all of its addresses, of both families', async () => {
  await using server = await knowing({ 'hooks.example.com': ['2001:db8::1', '192.0.2.1', '192.0.2.2'] });
  const names = await namesOf(server);
  expect(await addresses(names, 'hooks.example.com')).toEqual([
    ['192.0.2.1', 4],
    ['192.0.2.2', 4],
    ['2001:db8::1', 6],
  ]);
});

test('the hosts file comes first, whatever the case of a name', async () => {
  await using server = await knowing({ receiver: ['192.0.2.1'] });
  const hosts =
    '# comment receiver\n::1 localhost\n10.0.0.2\tother Receiver # 10.0.0.9\n127.0.0.1 localhost\nwrong receiver\n';
  const names = await namesOf(server, { hosts });
  expect(await addresses(names, 'receiver')).toEqual([['10.0.0.2', 4]]);
  expect(await addresses(names, 'localhost')).toEqual([
    ['127.0.0.1', 4],
    ['::1', 6],
  ]);
  expect(server.asked).toEqual([]);
});

test.each<[string, string, string, readonly string[]]>([
  ['without a search list', '', 'receiver.team', ['receiver.team']],
  [
    'with few dots: the list comes first',
    'search team.svc svc\noptions ndots:5',
    'a.b',
    ['a.b.team.svc', 'a.b.svc', 'a.b'],
  ],
  ['with many dots: the list comes last', 'search team.svc svc.', 'a.b', ['a.b', 'a.b.team.svc', 'a.b.svc']],
  ['with a dot at its end', 'search team.svc\noptions timeout:1 ndots:5', 'a.b.', ['a.b']],
  ['with the root as its list', 'search .', 'a', ['a']],
  ['with one domain, the last line counts', 'search x y\ndomain z', 'a', ['a.z', 'a']],
])('a name that nobody knows is searched as resolv.conf says: %s', async (_, resolvConf, name, searched) => {
  await using server = await knowing({});
  const names = await namesOf(server, { resolvConf });
  await expect(names.find(name, never)).rejects.toThrow(`the name ${name} has no address`);
  expect([...new Set(server.asked)]).toEqual(searched);
});

test('the first name of the list that has an address is used', async () => {
  await using server = await knowing({ 'a.one': 'failed', 'a.two': ['192.0.2.2'], 'a.three': ['192.0.2.3'] });
  const names = await namesOf(server, { resolvConf: 'search one two three' });
  expect(await addresses(names, 'a')).toEqual([['192.0.2.2', 4]]);
});

test('a server that fails is told from a name that does not exist', async () => {
  await using server = await knowing({ 'a.example.com': 'failed' });
  const names = await namesOf(server);
  await expect(names.find('a.example.com', never)).rejects.toThrow(
    /did not tell the address of a.example.com \(ESERVFAIL\)/,
  );
});

test('a look-up that is never answered ends with its signal', async () => {
  await using server = await DnsServer.start();
  const names = await namesOf(server);
  const ending = new AbortController();
  const found = names.find('a.example.com', ending.signal);
  const failed = expect(found).rejects.toThrow('enough');
  await eventually(() => server.asked).toContain('a.example.com');
  ending.abort(new Error('enough'));
  await failed;
  await expect(names.find('a.example.com', ending.signal)).rejects.toThrow('enough');
});

test('a DNS server is named by an address, perhaps with a port', () => {
  for (const one of ['10.0.0.53', '10.0.0.53:5353', 'fd00::53', '[fd00::53]:5353']) {
    expect(dnsServer.safeParse(one).success, one).toBe(true);
  }
  for (const one of ['', 'dns.example.com', '10.0.0', '10.0.0.53:dns', '10.0.0.53:99999']) {
    expect(dnsServer.safeParse(one).success, one).toBe(false);
  }
});
