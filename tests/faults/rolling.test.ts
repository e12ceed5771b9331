import { inject, test } from 'vitest';
import { restartUnderLoad } from '../kit/rolling.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];

test('one of two processes of every service is restarted under load: every failure allows a retry', async () => {
  await restartUnderLoad({ kafkaBrokers, clickhouseUrl, name: 'everyone', restarted: [0] });
});
