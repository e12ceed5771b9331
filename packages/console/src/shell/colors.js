// The chosen colors, before the page is painted for the first time: settings.ts sets them again, and follows changes.
try {
  const { theme } = JSON.parse(localStorage.getItem('sluice-settings') ?? '{}');
  if (theme === 'light' || theme === 'dark') document.documentElement.style.colorScheme = theme;
} catch {
  // Nothing is stored, or this browser stores nothing.
}
