// The commands of packages/cli, for the npm scripts: "npm run import" runs "sluice import".
import '../packages/cli/src/main.ts';
