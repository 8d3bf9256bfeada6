import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { isName } from '../../backend/src/protocol/mine-node.js'
import { longestName } from '../../backend/src/protocol/mint.js'
import type { HttpMineIndex, MineIndex } from '../mining/mine-index.js'
import type { MiningEvent } from '../mining/mine-name.js'
import type { ServerDeployment } from '../mining/server-deployment.js'
import { element } from './elements.js'
import { type MiningOrder, nameRule, OrderError, type OrderFields, readOrder } from './mining-order.js'
import { forgetMint, resend, runOrder, type ShownMint, savedMints } from './mining-run.js'
import { type CardState, cardOf, MintCard } from './mint-card.js'
import { ProgressView } from './progress-view.js'

interface Served {
  server: ServerDeployment
  index: HttpMineIndex
  workerUrl: URL
}

interface PaidCard {
  card: MintCard
  beef: Uint8Array
}

/** @param isBound Whether a solution is of use to one owner alone. */
function ownerHint(payer: string, isBound: boolean): string {
  if (payer === 'made-up')
    return 'The name is locked to it. Left empty, the name is nobody’s: on a local network that may do.'
  if (payer === 'wallet') return 'The name is locked to it. Left empty, the name belongs to the wallet.'
  const needed = 'Needed before the search: the name is locked to it.'
  return isBound
    ? `${needed} Only this owner can use the solution.`
    : `${needed} In this tree whoever sees the solution can use it for another owner: show it to nobody.`
}

/** The form, and what comes of it. */
export class MiningForm {
  readonly #served: Served
  readonly #form = element('form', HTMLFormElement)
  readonly #name = element('name', HTMLInputElement)
  readonly #start = element('start', HTMLButtonElement)
  readonly #stop = element('stop', HTMLButtonElement)
  readonly #error = element('form-error', HTMLElement)
  readonly #mints = element('mints', HTMLElement)
  readonly #progress = new ProgressView()
  #running: AbortController | undefined
  readonly #nameState: NameState
  /** The mint that is paid for and on its way. */
  #pending: PaidCard | undefined

  constructor(served: Served) {
    this.#served = served
    this.#nameState = new NameState(served.index)
  }

  /** Makes the form ready. */
  open(): void {
    const isLocal = this.#served.server.profile === 'local'
    const name = this.#name
    const { deployment } = this.#served.server
    name.maxLength = longestName(deployment)
    element('name-hint', HTMLElement).textContent = nameRule(deployment)
    element('made-up-choice', HTMLElement).hidden = !isLocal
    this.#choose(isLocal ? 'made-up' : 'wallet')
    element('workers', HTMLInputElement).value = String(navigator.hardwareConcurrency)
    name.addEventListener('input', () => this.#nameState.look(name.value.trim()))
    element('payers', HTMLFieldSetElement).addEventListener('change', () => this.#hint())
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault()
      void this.#submit()
    })
    this.#stop.addEventListener('click', () => this.#running?.abort())
    // A link may say which name is meant; whose it is to be, only whoever mines it.
    const linked = new URLSearchParams(location.search).get('name')
    if (linked !== null && name.value === '') name.value = linked
    this.#nameState.look(name.value.trim())
    this.#showStored()
    this.#start.disabled = false
  }

  /** Shows the mints that were paid for before the page was closed, each to be sent again. */
  #showStored(): void {
    for (const stored of savedMints()) {
      const card = new MintCard(stored)
      this.#mints.prepend(card.root)
      const { beef } = stored
      this.#offerAgain({ card, beef }, new Error('the page was closed before the server had it'))
    }
  }

  #choose(payer: string): void {
    for (const choice of this.#form.querySelectorAll<HTMLInputElement>('input[name=payer]'))
      choice.checked = choice.value === payer
    this.#hint()
  }

  #fields(): OrderFields {
    const data = new FormData(this.#form)
    const text = (name: string): string => String(data.get(name) ?? '')
    return { name: text('name'), owner: text('owner'), payer: text('payer'), workers: text('workers') }
  }

  #hint(): void {
    const { payer } = this.#fields()
    const isBound = this.#served.server.deployment.covenantVersion !== 1
    element('owner-hint', HTMLElement).textContent = ownerHint(payer, isBound)
    element('owner', HTMLInputElement).required = payer === 'nobody'
  }

  async #submit(): Promise<void> {
    const order = this.#order()
    if (order === undefined || this.#running !== undefined) return
    this.#running = new AbortController()
    const { signal } = this.#running
    this.#busy(true)
    this.#progress.begin(order.name)
    try {
      await runOrder({
        ...this.#served,
        order,
        signal,
        onEvent: (event) => this.#tell(event),
        onMint: (mint) => this.#show(mint),
      })
      this.#progress.end(doneText(order))
    } catch (error) {
      this.#fail(error, signal)
    } finally {
      this.#running = undefined
      this.#pending = undefined
      this.#busy(false)
      this.#nameState.look(order.name)
    }
  }

  /** Undefined where a field does not do, which is said. */
  #order(): MiningOrder | undefined {
    for (const field of this.#form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid')
    this.#error.hidden = true
    try {
      return readOrder(this.#fields(), this.#served.server)
    } catch (error) {
      if (!(error instanceof OrderError)) throw error
      this.#error.textContent = error.message
      this.#error.hidden = false
      const field = this.#form.querySelector<HTMLInputElement>(`input[name=${error.field}]`)
      field?.closest('details')?.setAttribute('open', '')
      field?.setAttribute('aria-invalid', 'true')
      field?.focus()
      return undefined
    }
  }

  #busy(isBusy: boolean): void {
    const heldFocus = document.activeElement === this.#start || document.activeElement === this.#stop
    for (const field of this.#form.querySelectorAll('input')) field.disabled = isBusy
    this.#start.disabled = isBusy
    this.#stop.hidden = !isBusy
    // A control that goes away takes the keyboard's place with it.
    if (heldFocus) (isBusy ? this.#stop : this.#start).focus()
  }

  #tell(event: MiningEvent): void {
    this.#progress.tell(event)
    if (event.kind === 'minted')
      this.#settle(this.#pending, event.byOther ? { kind: 'by-other', by: event.txid } : { kind: 'known' })
    if (event.kind === 'moved') this.#settle(this.#pending, { kind: 'lost' })
    if (event.kind === 'minted' || event.kind === 'moved') this.#pending = undefined
  }

  #settle(paid: PaidCard | undefined, state: Exclude<CardState, { kind: 'sending' | 'unsent' }>): void {
    if (paid === undefined) return
    paid.card.show(state)
    forgetMint(paid.card.txid)
  }

  #show(mint: ShownMint): void {
    const card = new MintCard(cardOf(mint, this.#served.server))
    this.#mints.prepend(card.root)
    if (mint.beef !== undefined) this.#pending = { card, beef: mint.beef }
  }

  /** What was paid for is not lost with the run that it was for. */
  #offerAgain({ card, beef }: PaidCard, error: unknown): void {
    const { txid, name } = card
    const again = (): void => {
      card.show({ kind: 'sending' })
      resend(this.#served, { beef, txid, name }).then(
        (state) => this.#settle({ card, beef }, state),
        (failure: unknown) => this.#offerAgain({ card, beef }, failure),
      )
    }
    card.show({ kind: 'unsent', reason: reasonOf(error), again })
  }

  #fail(error: unknown, signal: AbortSignal): void {
    if (signal.aborted && error === signal.reason) {
      this.#progress.end('Stopped. What was minted stays: the same name can be mined on from there.')
      return
    }
    if (this.#pending !== undefined) this.#offerAgain(this.#pending, error)
    this.#progress.end(`It ends here: ${reasonOf(error)}`)
  }
}

function doneText({ name, payer }: MiningOrder): string {
  return payer === 'nobody'
    ? 'Found. The mint below is yours to pay for and to send.'
    : `${name} is mined, all of it.`
}

function reasonOf(error: unknown): string {
  const message = messageOf(error)
  return message.endsWith('.') ? message : `${message}.`
}

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
      return ['error', messageOf(error)]
    }
  }

  #show(kind: string, text: string): void {
    this.#line.dataset.kind = kind
    this.#line.textContent = text
  }
}
