import type { MiningEvent } from '../mining/mine-name.js'
import type { SearchProgress } from '../mining/search/search-nonce.js'
import { element, make } from './elements.js'
import { count, duration, percent, rate } from './figures.js'

/** Shows how far the mining of a name is. What happened is announced; the figures of a search change without a word. */
export class ProgressView {
  readonly #section = element('progress', HTMLElement)
  readonly #letters = element('letters', HTMLElement)
  readonly #status = element('status', HTMLElement)
  readonly #search = element('search', HTMLElement)
  readonly #luck = element('luck', HTMLProgressElement)
  #name = ''
  #mined = 0
  #hasMoved = false

  begin(name: string): void {
    this.#name = name
    this.#section.hidden = false
    this.#mined = 0
    this.#hasMoved = false
    this.#letters.replaceChildren()
    this.say('Asking where to mine from…')
  }

  say(text: string): void {
    this.#status.textContent = text
  }

  tell(event: MiningEvent): void {
    const { name } = event
    if (event.kind === 'started') {
      this.#mined = event.node.domain.length
      this.#showLetters({ isOn: true })
      const anew = `Somebody else has moved the node: searching for ${name} anew, from where it went.`
      this.say(this.#hasMoved ? anew : `Searching for ${name}.`)
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

  /** The search is over, however it went. */
  end(text: string): void {
    this.#search.hidden = true
    if (this.#letters.hasChildNodes()) this.#showLetters({ isOn: false })
    this.say(text)
  }

  /** @param search Whether the first that is missing is searched for. */
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
