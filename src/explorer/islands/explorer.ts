import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { coreCount, workerHost } from '../../client/workers.js'
import { searchInWorkers } from '../../mining/search/search-workers.js'
import { make } from '../mine-page/elements.js'
import { count, duration, rate } from '../mine-page/figures.js'

// The script of every page. Every page works without it.

/** Makes the copy buttons work; without access to the clipboard, they select the text. */
function copyButtons(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
    button.hidden = false
    const label = button.textContent
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy ?? '')
        button.textContent = 'copied'
      } catch {
        // Pages without TLS have no clipboard.
        button.textContent = selectBeside(button) ? 'selected' : 'no clipboard'
      }
      setTimeout(() => {
        button.textContent = label
      }, 1500)
    })
  }
}

function selectBeside(button: HTMLButtonElement): boolean {
  const shown = button.parentElement?.querySelector('code')
  if (!shown) return false
  shown.textContent = button.dataset.copy ?? ''
  getSelection()?.selectAllChildren(shown)
  return true
}

const UNITS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
]

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' })

/** Shows times as ages; the exact time moves to the title. */
function showAges(): void {
  for (const time of document.querySelectorAll<HTMLTimeElement>('time[data-ago]')) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000
    const [unit, length] = UNITS.find(([, each]) => seconds >= each) ?? ['minute', 60]
    time.title ||= `${time.textContent} UTC`
    time.textContent = seconds < 60 ? 'just now' : relative.format(-Math.floor(seconds / length), unit)
  }
}

interface Health {
  height?: number
  lag?: number
  follow?: { state?: string }
}

async function showChain(): Promise<void> {
  const foot = document.querySelector('[data-chain]')
  if (foot === null) return
  try {
    const { height, lag, follow } = (await (await fetch('/health')).json()) as Health
    if (typeof height !== 'number') return
    const behind = typeof lag !== 'number' ? '' : lag === 0 ? ' · up to date' : ` · ${count(lag)} behind`
    const state = follow?.state === 'catching up' ? ' · catching up' : ''
    foot.textContent = `Block ${count(height)}${behind}${state}`
    for (const place of document.querySelectorAll('[data-height]')) place.textContent = count(height)
  } catch {
    // The page works without it.
  }
}

/** Buttons that verify something in this browser. The code for that is loaded on a click. */
function verifyButtons(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-verify]')) {
    button.hidden = false
    const label = button.textContent
    button.addEventListener('click', async () => {
      button.disabled = true
      button.textContent = label
      // Not bundled with this script: it is ninety times as large.
      const script = new URL('verify.js', import.meta.url).href
      try {
        const { verify } = (await import(script)) as typeof import('./verify.js')
        await verify(button)
      } catch {
        button.textContent = 'Cannot be loaded: try again'
      }
      button.disabled = false
    })
  }
}

/** How often an open page asks for newer entries, in milliseconds. */
const NEWER_EVERY = 4000

/** Refreshes the lists of the page every few seconds while it is visible. Most answers are 304. */
function liveLists(): void {
  const lists = [...document.querySelectorAll<HTMLElement>('[data-live]')]
  if (lists.length === 0) return
  let tag: string | null = null
  const refresh = async (): Promise<void> => {
    if (document.hidden) return
    try {
      // Revalidated here: the browser's cache would report 200, and the page would be parsed each time.
      const headers = new Headers({ Accept: 'text/html' })
      if (tag !== null) headers.set('If-None-Match', tag)
      const answer = await fetch(location.href, { headers })
      if (answer.status !== 200) return
      tag = answer.headers.get('ETag')
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
      for (const list of lists) {
        const fresh = page.getElementById(list.id)
        if (fresh === null || fresh.dataset.live === list.dataset.live) continue
        // Keyboard users keep their focus.
        if (list.contains(document.activeElement)) {
          tag = null
          continue
        }
        list.replaceChildren(...fresh.children)
        list.dataset.live = fresh.dataset.live
      }
      showAges()
    } catch {
      // The next refresh tries again.
    }
  }
  setInterval(() => void refresh(), NEWER_EVERY)
}

/** How long the speed of mining is measured, in milliseconds. */
const MEASURED = 1000
const KEPT = 'hashes-per-second'

/** Shows how long mining the name of the page takes at the speed of this machine, instead of the assumed one. */
async function showMiningTime(): Promise<void> {
  const place = document.querySelector<HTMLElement>('[data-hashes]')
  if (place === null) return
  const known = Number(sessionStorage.getItem(KEPT))
  const hashesPerSecond = known > 0 ? known : await measured()
  if (hashesPerSecond === undefined) return
  sessionStorage.setItem(KEPT, String(hashesPerSecond))
  const time = duration(Number(place.dataset.hashes) / hashesPerSecond)
  place.textContent = `${time} on this machine, at ${rate(hashesPerSecond)}`
}

/** The speed of a short search that finds nothing, in hashes a second; undefined if the search does not run here. */
async function measured(): Promise<number | undefined> {
  const host = await workerHost()
  if (host === undefined) return undefined
  const over = new AbortController()
  let [hashes, elapsed] = [0, 0]
  let start: number | undefined
  const onHashes = (more: number): void => {
    start ??= monotonic()
    elapsed = monotonic() - start
    // The first batch began before the clock.
    if (elapsed > 0) hashes += more
    if (elapsed > MEASURED) over.abort()
  }
  const task = { seed: new Uint8Array(32), character: 'a', difficulty: 64, noncePrefix: new Uint8Array() }
  const url = new URL('../mine/search-worker.js', import.meta.url)
  try {
    await searchInWorkers({ task, host, workers: await coreCount(), url, signal: over.signal, onHashes })
  } catch {
    if (!over.signal.aborted) return undefined
  }
  return (hashes / elapsed) * 1000
}

/** What a name may begin with (`NAME_PATTERN`, whose module is larger than this script). */
const BEGIN = /^[a-z0-9-]{1,255}$/
/** How long to wait after the last key before the host is asked, in milliseconds. */
const PAUSE = 200

interface Suggested {
  names: { name: string }[]
  results: { kind: string; name?: string }[]
}

/** Suggests names that begin with the text in a search field, and says if the text itself is a free name. */
function suggestNames(): void {
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
    // The text has changed meanwhile, or the host does not answer: search works without suggestions.
  }
}

function isChosen(event: Event): boolean {
  return !(event instanceof InputEvent) || event.inputType === 'insertReplacementText'
}

copyButtons()
showAges()
verifyButtons()
liveLists()
suggestNames()
void showMiningTime()
setInterval(showAges, 30_000)
void showChain()
setInterval(() => void (document.hidden || showChain()), 30_000)
