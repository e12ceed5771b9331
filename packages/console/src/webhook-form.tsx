/** A form for a new webhook. */
export function WebhookForm({ onCreate }: { readonly onCreate: (given: object) => void }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    // Of a filter that is there twice the last one counts, as in an address that is edited.
    const filter = Object.fromEntries(new URLSearchParams(String(form.get('filter'))));
    onCreate({ url: String(form.get('url')), filter, batched: form.has('batched') });
  };
  return (
    <form class="filters" aria-label="New webhook" onSubmit={submit}>
      <div class="fields">
        <label>
          Address that gets the events
          <input type="url" name="url" required placeholder="https://example.com/events" />
        </label>
        <label>
          Filters, as behind #/events?
          <input name="filter" placeholder="event=signed_up&amp;properties.plan=pro" />
        </label>
      </div>
      <div class="actions">
        <label>
          <input type="checkbox" name="batched" /> up to 100 events at once
        </label>
        <button type="submit" class="primary">
          Create a webhook
        </button>
      </div>
    </form>
  );
}
