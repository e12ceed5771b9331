import { inject, test } from 'vitest';
import { restartUnderLoad } from '../kit/rolling.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];

test('every process of every service is restarted, one after the other, under load: every failure allows a retry', async () => {
  await restartUnderLoad({ kafkaBrokers, clickhouseUrl, name: 'everyoneboth', restarted: [0, 1] });
});
