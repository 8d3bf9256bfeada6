import { make } from '../mine-page/elements.js'

/** What may begin names (`NAME_PATTERN`): the module that has it is larger than this script. */
const BEGIN = /^[a-z0-9-]{1,255}$/
/** How long to wait after the last key before the host is asked, in milliseconds. */
const PAUSE = 200

interface Suggested {
  names: { name: string }[]
  results: { kind: string; name?: string }[]
}

/** Offers names that begin with what is typed into the fields of a search, and says of a free one that it is. */
export function suggestNames(): void {
  for (const [at, field] of document.querySelectorAll<HTMLInputElement>('input[data-gateway]').entries()) {
    const list = make('datalist', { id: `names-${at}` })
    field.after(list)
    field.setAttribute('list', list.id)
    let last = new AbortController()
    let waiting: ReturnType<typeof setTimeout> | undefined
    field.addEventListener('input', (event) => {
      clearTimeout(waiting)
      last.abort()
      last = new AbortController()
      if (isChosen(event)) return field.form?.requestSubmit()
      const { signal } = last
      const text = field.value.trim().toLowerCase()
      if (BEGIN.test(text)) waiting = setTimeout(() => void suggest(list, { field, text, signal }), PAUSE)
      else list.replaceChildren()
    })
  }
}

async function suggest(
  list: HTMLElement,
  { field, text, signal }: { field: HTMLInputElement; text: string; signal: AbortSignal },
): Promise<void> {
  try {
    const query = new URLSearchParams({ text })
    const answer = await fetch(`${field.dataset.gateway}/search?${query}`, { signal })
    if (!answer.ok) return
    const { names, results } = (await answer.json()) as Suggested
    const free = results.flatMap(({ kind, name }) => (kind === 'unclaimed' && name ? [name] : []))
    list.replaceChildren(
      ...names.map(({ name }) => make('option', { value: name })),
      ...free.map((name) => make('option', { value: name, label: `${name}: free` })),
    )
  } catch {
    // Something else was typed meanwhile, or the host is away: a search works without.
  }
}

/** Whether a suggestion was taken, rather than a key pressed. */
function isChosen(event: Event): boolean {
  return !(event instanceof InputEvent) || event.inputType === 'insertReplacementText'
}
