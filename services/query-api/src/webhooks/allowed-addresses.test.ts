import { expect, test } from 'vitest';
import { network } from '../config.ts';
import { AllowedAddresses } from './allowed-addresses.ts';

const publicOnly = new AllowedAddresses();

test.each([
  ...[
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
  ],
  ...['192.0.0.1', '192.168.1.1', '198.18.0.1', '224.0.0.1', '255.255.255.255', '240.0.0.1'],
  ...[
    '::',
    '::1',
    'fe80::1',
    'fe80::1%eth0',
    'fd00:ec2::254',
    'fc00::1',
    'ff02::1',
    '64:ff9b::a00:1',
    '2002:a00:1::',
    '2001::1',
  ],
  ...['::ffff:10.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:a9fe:a9fe', '::127.0.0.1', '2001:db8::1', '100::1'],
  ...['', 'localhost', '1.2.3', 'nonsense'],
])('%s is refused', (address) => {
  expect(publicOnly.has(address)).toBe(false);
});

test.each(['1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:1.1.1.1'])('%s is allowed', (address) => {
  expect(publicOnly.has(address)).toBe(true);
});

test('networks are allowed besides public addresses, and no others', () => {
  const some = new AllowedAddresses(['10.1.0.0/16', 'fd00::/8', '127.0.0.1']);
  const allowed = [
    '10.1.2.3',
    '10.2.0.1',
    'fd00::1',
    'fe80::1',
    '127.0.0.1',
    '127.0.0.2',
    '::ffff:10.1.0.1',
    '1.1.1.1',
  ];
  expect(allowed.filter((address) => some.has(address))).toEqual([
    ...['10.1.2.3', 'fd00::1', '127.0.0.1', '::ffff:10.1.0.1', '1.1.1.1'],
  ]);
});

test('a network is an address, or one with a number of bits', () => {
  const given = ['10.0.0.0/8', '10.0.0.1', 'fd00::/8', '::1', '10.0.0.0/33', '10.0.0/8', 'host', '10.0.0.0/8/8', ''];
  expect(given.filter((text) => network.safeParse(text).success)).toEqual(given.slice(0, 4));
});
