import { isName } from '../../backend/src/protocol/mine-node.js'
import type { MineIndex } from '../mining/mine-index.js'
import { element } from './elements.js'

/** How long somebody has stopped typing before the server is asked, in milliseconds. */
const PAUSE = 250

/** Says below the name, as it is typed, what of it is mined already. */
export class NameState {
  readonly #line = element('name-state', HTMLElement)
  readonly #index: Pick<MineIndex, 'liveNode'>
  #waiting: ReturnType<typeof setTimeout> | undefined
  #asked = 0

  constructor(index: Pick<MineIndex, 'liveNode'>) {
    this.#index = index
  }

  look(name: string): void {
    clearTimeout(this.#waiting)
    const turn = ++this.#asked
    if (name === '') this.#show('none', '')
    else if (!isName(name)) this.#show('error', 'This is not a name.')
    else this.#waiting = setTimeout(() => this.#ask(name, turn), PAUSE)
  }

  async #ask(name: string, turn: number): Promise<void> {
    const [kind, text] = await this.#stateOf(name)
    // Answers may overtake each other, and only that for what stands there now counts.
    if (turn === this.#asked) this.#show(kind, text)
  }

  async #stateOf(name: string): Promise<[kind: string, text: string]> {
    try {
      const node = await this.#index.liveNode(name)
      if (node === undefined) return ['taken', `${name} is taken.`]
      const { domain } = node
      const missing = name.slice(domain.length)
      return ['free', domain === '' ? 'None of it is mined yet.' : `Mined: ${domain}. Missing: ${missing}.`]
    } catch (error) {
      return ['error', error instanceof Error ? error.message : String(error)]
    }
  }

  #show(kind: string, text: string): void {
    this.#line.dataset.kind = kind
    this.#line.textContent = text
  }
}
