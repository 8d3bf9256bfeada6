import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { isHostLabel } from '../../../backend/src/protocol/host-label.js'
import { longestName } from '../../../backend/src/protocol/mint.js'
import type { MiningEvent } from '../../mining/mine-name.js'
import { element, make, reasonOf } from './elements.js'
import { type MiningOrder, nameRule, type OrderFields } from './mining-order.js'
import type { Served, ShownMint } from './mining-run.js'
import type { CardState, MintCard } from './mint-card.js'
import { NameState } from './name-state.js'
import { type Line, ProgressView } from './progress-view.js'
import { forgetPayment, savedPayments } from './saved-payments.js'

type Mining = typeof import('./mining.js')
/** Not bundled with this script: it is six times as large. */
const MINING = new URL('mining.js', import.meta.url).href

interface PaidCard {
  card: MintCard
  beef: Uint8Array
}

/** @param isBound Whether only one owner can use a solution. */
function ownerHint(payer: string, isBound: boolean): string {
  if (payer === 'fake')
    return 'The name is locked to it. If empty, the name has no owner, which may be fine on a local network.'
  if (payer === 'wallet') return 'The name is locked to it. If empty, the name belongs to the wallet.'
  const needed = 'Needed before the search: the name is locked to it.'
  return isBound
    ? `${needed} Only this owner can use the solution.`
    : `${needed} In this tree, anyone who sees the solution can use it for another owner: show it to nobody.`
}

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
  /** The script that mines; undefined until it is needed. */
  #mining: Promise<Mining> | undefined
  #pending: PaidCard | undefined

  constructor(served: Served) {
    this.#served = served
    this.#nameState = new NameState(served.url)
  }

  open(): void {
    const isLocal = this.#served.server.profile === 'local'
    const name = this.#name
    const { deployment } = this.#served.server
    name.maxLength = longestName(deployment)
    element('name-hint', HTMLElement).textContent = nameRule(deployment)
    element('fake-choice', HTMLElement).hidden = !isLocal
    // With real coins, somebody has to pay; on a local network, payment is optional.
    const needed = element('needed', HTMLElement)
    needed.hidden = isLocal
    if (!isLocal) needed.append(element('payment', HTMLElement))
    this.#choose(isLocal ? 'fake' : 'wallet')
    element('workers', HTMLInputElement).value = String(navigator.hardwareConcurrency)
    name.addEventListener('input', () => this.#nameState.look(name.value.trim()))
    element('payers', HTMLFieldSetElement).addEventListener('change', () => this.#hint())
    // Loaded early, to be here when it is needed.
    this.#form.addEventListener('input', () => void this.#load().catch(() => {}), { once: true })
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault()
      void this.#submit()
    })
    this.#stop.addEventListener('click', () => this.#running?.abort())
    // A link may set the name, but not the owner.
    const linked = new URLSearchParams(location.search).get('name')
    if (linked !== null && name.value === '') name.value = linked
    this.#nameState.look(name.value.trim())
    void this.#showStored()
    this.#start.disabled = false
  }

  #load(): Promise<Mining> {
    this.#mining ??= (import(MINING) as Promise<Mining>).catch((cause: unknown) => {
      this.#mining = undefined
      throw new Error(`the mining script cannot be loaded: ${messageOf(cause)}`, { cause })
    })
    return this.#mining
  }

  /** Shows the paid mints that an earlier page left unsent, each with a button to send it again. */
  async #showStored(): Promise<void> {
    const saved = savedPayments('mint')
    if (saved.length === 0) return
    const mining = await this.#load()
    for (const stored of saved) {
      const card = new mining.MintCard(stored)
      this.#mints.prepend(card.root)
      const { beef } = stored
      this.#offerAgain(mining, { card, beef }, new Error('the page was closed before the server had it'))
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
    if (this.#running !== undefined) return
    this.#running = new AbortController()
    const { signal } = this.#running
    const mining = await this.#loaded()
    const order = mining && this.#order(mining)
    if (mining === undefined || order === undefined) {
      this.#running = undefined
      return
    }
    // First: the stop button is in it, and takes the focus.
    this.#progress.begin(order.name)
    this.#busy(true)
    try {
      await mining.runOrder({
        ...this.#served,
        order,
        signal,
        onEvent: (event) => this.#onEvent(event),
        onMint: (mint) => this.#show(mining, mint),
      })
      if (order.payer !== 'nobody') this.#nameState.mined.add(order.name)
      this.#progress.succeed(
        doneText(order),
        order.payer === 'nobody'
          ? []
          : nextSteps(order, this.#served, element('next', HTMLElement).dataset.hosts),
      )
    } catch (error) {
      this.#fail(mining, error, signal)
    } finally {
      this.#running = undefined
      this.#pending = undefined
      this.#busy(false)
      this.#progress.reveal()
      this.#nameState.look(order.name)
    }
  }

  /** The script that mines; undefined, with an error shown, if it cannot be loaded. */
  async #loaded(): Promise<Mining | undefined> {
    const { textContent: label } = this.#start
    this.#error.hidden = true
    this.#start.textContent = 'Loading…'
    try {
      return await this.#load()
    } catch (error) {
      this.#error.textContent = `Nothing can be mined now: ${reasonOf(error)}`
      this.#error.hidden = false
      return undefined
    } finally {
      this.#start.textContent = label
    }
  }

  /** The order in the form; undefined, with an error shown, if a field is invalid. */
  #order({ readOrder, OrderError }: Mining): MiningOrder | undefined {
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
    // The progress replaces the form.
    this.#form.hidden = isBusy
    // Hiding a focused control would lose the keyboard focus. The result is above the form, and stays in view.
    if (heldFocus) (isBusy ? this.#stop : this.#start).focus({ preventScroll: true })
  }

  #onEvent(event: MiningEvent): void {
    this.#progress.update(event)
    if (event.kind === 'minted')
      this.#finish(this.#pending, event.byOther ? { kind: 'by-other', by: event.txid } : { kind: 'known' })
    if (event.kind === 'moved') this.#finish(this.#pending, { kind: 'lost' })
    if (event.kind === 'minted' || event.kind === 'moved') this.#pending = undefined
  }

  #finish(paid: PaidCard | undefined, state: Exclude<CardState, { kind: 'sending' | 'unsent' }>): void {
    if (paid === undefined) return
    paid.card.show(state)
    forgetPayment('mint', paid.card.txid)
  }

  #show({ MintCard, cardOf }: Mining, mint: ShownMint): void {
    const card = new MintCard(cardOf(mint, this.#served.server))
    this.#mints.prepend(card.root)
    if (mint.beef !== undefined) this.#pending = { card, beef: mint.beef }
  }

  #offerAgain(mining: Mining, { card, beef }: PaidCard, error: unknown): void {
    const { txid, name } = card
    const again = (): void => {
      card.show({ kind: 'sending' })
      mining.resend(this.#served, { beef, txid, name }).then(
        (state) => this.#finish({ card, beef }, state),
        (failure: unknown) => this.#offerAgain(mining, { card, beef }, failure),
      )
    }
    card.show({ kind: 'unsent', reason: reasonOf(error), again })
  }

  #fail(mining: Mining, error: unknown, signal: AbortSignal): void {
    if (signal.aborted && error === signal.reason) {
      this.#progress.end('Stopped. What was minted remains: mine the same name again to continue from there.')
      return
    }
    if (this.#pending !== undefined) this.#offerAgain(mining, this.#pending, error)
    this.#progress.fail(`Mining ended: ${reasonOf(error)}`)
  }
}

function doneText({ name, payer }: MiningOrder): string {
  return payer === 'nobody'
    ? 'Found. The mint below is yours to pay for and to send.'
    : `All of ${name} is mined.`
}

/** What to do with a mined name. @param hosts The zone in which names are hosts, if there is one. */
function nextSteps({ name, payer, ownerLock }: MiningOrder, { url }: Served, hosts?: string): Line[] {
  const link = (href: string, text: string): Node => make('a', { href }, text)
  const host = hosts === undefined || !isHostLabel(name) ? undefined : `${name}.${hosts}`
  const isOurs = payer === 'wallet' || ownerLock === undefined
  const publish = isOurs
    ? make('a', { href: `${url}/my#${name}`, class: 'btn' }, `Publish on ${name.length > 20 ? 'it' : name}`)
    : `Its owner can publish on it: npx minetree publish site/ --name ${name} --url ${url}.`
  return [
    [publish, ...(host === undefined ? [] : [' Its site is then at ', link(`//${host}/`, host), '.'])],
    [
      link(`${url}/name/${name}`, `Look at ${name}`),
      ': its proof, its owner, and a button that verifies it in this browser.',
    ],
    [link(`${url}/mine?name=${name}`, 'Mine on'), `: names that begin with ${name} continue from here.`],
  ]
}
