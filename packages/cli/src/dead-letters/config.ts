import { clickHouseEnv, kafkaEnv } from '@sluice/shared/config';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { limitsEnv } from '@sluice/submissions/limits-env';
import { z } from 'zod';

/** The environment of the command for dead letters; docs/operate/configuration.md explains each variable. */
export const deadLettersConfig = z.object({ ...kafkaEnv, ...clickHouseEnv, ...serverEnv, ...limitsEnv });

export type DeadLettersConfig = z.output<typeof deadLettersConfig>;
