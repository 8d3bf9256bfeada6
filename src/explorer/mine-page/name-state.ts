import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { isName } from '../../../backend/src/protocol/mine-node.js'
import { askLiveNode } from '../../mining/server-answers.js'
import { element } from './elements.js'

/** How long to wait after the last key before the server is asked, in milliseconds. */
const PAUSE = 250

/** Shows below the name field how much of the name is mined already. */
export class NameState {
  /** Names that were mined in this page: being taken is no problem. */
  readonly mined = new Set<string>()
  readonly #line = element('name-state', HTMLElement)
  readonly #url: string
  #waiting: ReturnType<typeof setTimeout> | undefined
  #asked = 0

  constructor(url: string) {
    this.#url = url
  }

  look(name: string): void {
    clearTimeout(this.#waiting)
    const question = ++this.#asked
    if (name === '') this.#show('none', '')
    else if (this.mined.has(name)) this.#show('free', `${name} is mined, by you.`)
    else if (!isName(name)) this.#show('error', 'This is not a name.')
    else this.#waiting = setTimeout(() => this.#ask(name, question), PAUSE)
  }

  async #ask(name: string, question: number): Promise<void> {
    const [kind, text] = await this.#stateOf(name)
    // Answers may arrive out of order; only that to the last question counts.
    if (question === this.#asked) this.#show(kind, text)
  }

  async #stateOf(name: string): Promise<[kind: string, text: string]> {
    try {
      const node = await askLiveNode({ url: this.#url, name })
      if (node === undefined) return ['taken', `${name} is taken.`]
      const { domain } = node
      const missing = name.slice(domain.length)
      return ['free', domain === '' ? 'None of it is mined yet.' : `Mined: ${domain}. Missing: ${missing}.`]
    } catch (error) {
      return ['error', messageOf(error)]
    }
  }

  #show(kind: string, text: string): void {
    this.#line.dataset.kind = kind
    this.#line.textContent = text
  }
}
