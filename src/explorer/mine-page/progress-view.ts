import type { MiningEvent } from '../../mining/mine-name.js'
import type { SearchProgress } from '../../mining/search/search-nonce.js'
import { element, make } from './elements.js'
import { count, duration, percent, rate } from './figures.js'

export type Line = (Node | string)[]

/** Shows the progress of mining. Events are announced to screen readers; the figures of a search are not announced. */
export class ProgressView {
  readonly #section = element('progress', HTMLElement)
  readonly #letters = element('letters', HTMLElement)
  readonly #status = element('status', HTMLElement)
  readonly #search = element('search', HTMLElement)
  readonly #luck = element('luck', HTMLProgressElement)
  readonly #afterwards = element('afterwards', HTMLElement)
  readonly #next = element('next', HTMLElement)
  #name = ''
  #mined = 0
  #hasMoved = false

  begin(name: string): void {
    this.#name = name
    this.#section.hidden = false
    this.#section.dataset.kind = 'running'
    this.#afterwards.hidden = true
    this.#mined = 0
    this.#hasMoved = false
    this.#letters.replaceChildren()
    this.say('Asking where to mine from…')
    this.reveal()
  }

  /** Scrolls to the latest message at once: layout changes around it would stop a smooth scroll. */
  reveal(): void {
    for (const part of [this.#letters, this.#status])
      part.scrollIntoView({ block: 'nearest', behavior: 'instant' })
  }

  say(text: string): void {
    this.#status.textContent = text
  }

  update(event: MiningEvent): void {
    const { name } = event
    if (event.kind === 'started') {
      this.#mined = event.node.domain.length
      this.#showLetters({ isOn: true })
      const restarted = `Somebody else has spent the node: searching for ${name} again, from its successor.`
      this.say(this.#hasMoved ? restarted : `Searching for ${name}.`)
      this.#figures({ hashes: 0, luck: 0 })
      this.#search.hidden = false
    } else if (event.kind === 'searching') this.#figures(event.progress)
    else if (event.kind === 'moved') this.#hasMoved = true
    else {
      this.#hasMoved = false
      this.#mined = name.length
      this.#showLetters({ isOn: false })
      this.say(`Mined ${name} after ${count(event.hashes)} hashes.`)
    }
  }

  /** Ends the display of a search that succeeded. @param next What to do with the name, a line each. */
  succeed(text: string, next: Line[]): void {
    this.end(text)
    this.#section.dataset.kind = 'done'
    this.#next.replaceChildren(...next.map((line) => make('li', {}, ...line)))
    this.#afterwards.hidden = next.length === 0
  }

  fail(text: string): void {
    this.end(text)
    this.#section.dataset.kind = 'failed'
  }

  end(text: string): void {
    this.#section.dataset.kind = 'ended'
    this.#search.hidden = true
    if (this.#letters.hasChildNodes()) this.#showLetters({ isOn: false })
    this.say(text)
  }

  /** @param search.isOn Whether the first missing character is being searched. */
  #showLetters(search: { isOn: boolean }): void {
    const stateOf = (at: number): string => {
      if (at < this.#mined) return 'mined'
      return at === this.#mined && search.isOn ? 'mining' : 'missing'
    }
    const letters = Array.from(this.#name, (letter, at) =>
      make('span', { 'data-state': stateOf(at), 'aria-hidden': 'true' }, letter),
    )
    this.#letters.replaceChildren(...letters)
    this.#letters.setAttribute('role', 'img')
    this.#letters.setAttribute('aria-label', `${this.#mined} of ${letters.length} characters are mined`)
  }

  #figures(progress: Pick<SearchProgress, 'hashes' | 'luck'> & Partial<SearchProgress>): void {
    const { hashes, luck, hashesPerSecond, expectedSeconds } = progress
    const set = (id: string, text: string): void => {
      element(id, HTMLElement).textContent = text
    }
    set('hashes', count(hashes))
    set('rate', hashesPerSecond === undefined ? '–' : rate(hashesPerSecond))
    set('expected', expectedSeconds === undefined ? '–' : duration(expectedSeconds))
    set('luck-text', percent(luck))
    this.#luck.value = luck * 100
  }
}
