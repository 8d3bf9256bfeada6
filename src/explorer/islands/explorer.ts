import { showMiningTime } from './mining-time.js'
import { suggestNames } from './suggestions.js'

// The script of every page: it adds to what is there, and every page works without it.

/** Copies what a button holds; without access to the clipboard, the button says so. */
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

/** Shows the whole text beside a button, and selects it. */
function selectBeside(button: HTMLButtonElement): boolean {
  const shown = button.parentElement?.querySelector('.hex')
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

/** Shows times as how long ago they were; the moment itself moves to the title. */
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

const whole = new Intl.NumberFormat('en-GB')

/** Says in the foot of the page how far the host has come. */
async function showChain(): Promise<void> {
  const foot = document.querySelector('[data-chain]')
  if (foot === null) return
  try {
    const { height, lag, follow } = (await (await fetch('/health')).json()) as Health
    if (typeof height !== 'number') return
    const behind =
      typeof lag !== 'number' ? '' : lag === 0 ? ' · up to date' : ` · ${whole.format(lag)} behind`
    const state = follow?.state === 'catching up' ? ' · catching up' : ''
    foot.textContent = `Block ${whole.format(height)}${behind}${state}`
    for (const place of document.querySelectorAll('[data-height]')) place.textContent = whole.format(height)
  } catch {
    // It is not needed.
  }
}

/** Buttons that verify something in this browser, by what is loaded only then. */
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

/** How often an open page asks whether there is anything newer, in milliseconds. */
const NEWER_EVERY = 4000

/** Asks every few seconds for what is newer in the lists of the page, while somebody looks at it: mostly, that is a 304. */
function liveLists(): void {
  const lists = [...document.querySelectorAll<HTMLElement>('[data-live]')]
  if (lists.length === 0) return
  let tag: string | null = null
  const refresh = async (): Promise<void> => {
    if (document.hidden) return
    try {
      // The script's own: answers of the browser's cache are 200, and would be read each time.
      const headers = new Headers({ Accept: 'text/html' })
      if (tag !== null) headers.set('If-None-Match', tag)
      const answer = await fetch(location.href, { headers })
      if (answer.status !== 200) return
      tag = answer.headers.get('ETag')
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
      for (const list of lists) {
        const fresh = page.getElementById(list.id)
        if (fresh === null || fresh.dataset.live === list.dataset.live) continue
        // Whoever is in it with the keyboard is not to lose their place.
        if (list.contains(document.activeElement)) {
          tag = null
          continue
        }
        list.replaceChildren(...fresh.children)
        list.dataset.live = fresh.dataset.live
      }
      showAges()
    } catch {
      // The next time.
    }
  }
  setInterval(() => void refresh(), NEWER_EVERY)
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
