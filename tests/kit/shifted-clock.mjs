// Loaded into a process by --import: its wall clock is CLOCK_SHIFT_MS ahead. SIGUSR2 sets it right, as NTP would.
const { now } = Date;
let shiftMs = Number(process.env['CLOCK_SHIFT_MS']);
Date.now = () => now() + shiftMs;
process.on('SIGUSR2', () => {
  shiftMs = shiftMs === 0 ? Number(process.env['CLOCK_SHIFT_MS']) : 0;
});
