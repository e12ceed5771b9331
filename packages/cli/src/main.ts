#!/usr/bin/env node
import { runSluice } from './sluice.ts';

// An input that has not ended, or a connection that is kept alive, must not keep the process from ending.
process.exit(await runSluice(process.argv.slice(2), process.env));
