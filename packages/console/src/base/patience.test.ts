import { expect, test } from 'vitest';
import { ApiError } from './api.ts';
import { patiently } from './patience.ts';

const busy = () => new ApiError(503, 'The service is busy; try again.', [], 0);

test('a request that finds query-api busy is sent again, and not for ever', async () => {
  const { signal } = new AbortController();
  let sent = 0;
  const send = async (busyTimes: number) => {
    sent += 1;
    if (sent <= busyTimes) throw busy();
    return sent;
  };
  let busyTimes = 0;
  const onBusy = () => {
    busyTimes += 1;
  };
  expect(await patiently(() => send(3), signal, onBusy)).toBe(4);
  expect(busyTimes).toBe(3);
  sent = 0;
  await expect(patiently(() => send(99), signal)).rejects.toThrow('busy');
  expect(sent).toBe(5);
});

test('what fails otherwise is not sent again, nor what nobody waits for', async () => {
  let sent = 0;
  const failing = (error: ApiError, signal: AbortSignal) =>
    patiently(() => {
      sent += 1;
      return Promise.reject(error);
    }, signal);
  await expect(failing(new ApiError(400, 'wrong'), new AbortController().signal)).rejects.toThrow('wrong');
  await expect(failing(busy(), AbortSignal.abort())).rejects.toThrow('busy');
  expect(sent).toBe(2);
});
