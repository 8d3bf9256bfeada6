import type { WalletClient } from '@bsv/sdk'
import * as z from 'zod/mini'
import { readBeefTransaction } from '../../../backend/src/protocol/beef-transaction.js'
import { isName } from '../../../backend/src/protocol/mine-node.js'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import { ANSWER_TIMEOUT, askJson, unexpectedAnswer } from '../../mining/server-answers.js'
import { sendWithWallet } from '../../payments/wallet.js'
import { NAME_BASKET } from '../../payments/wallet-keys.js'
import { button, element, make, reasonOf } from '../mine-page/elements.js'
import { findWallet } from '../mine-page/find-wallet.js'
import { forgetPayment, type SavedPayment, savedPayments } from '../mine-page/saved-payments.js'
import { type Served, submitMove } from './deeds.js'
import { NamePanel } from './name-panel.js'

const MOST_LISTED = 100
const MOST_KEPT = 1000

const instructions = z.object({ keyID: z.string(), name: z.optional(z.string()) })
const namesAnswer = z.object({ names: z.array(z.object({ name: z.string() })) })

export class MyNames {
  readonly #served: Served
  readonly #panel: NamePanel
  readonly #state = element('names-state', HTMLElement)
  readonly #list = element('names', HTMLElement)
  readonly #connect = element('connect', HTMLButtonElement)
  #wallet: WalletClient | undefined

  constructor(served: Served) {
    this.#served = served
    this.#panel = new NamePanel(served, { onFailure: () => this.#showUnsent() })
  }

  async open(): Promise<void> {
    this.#connect.hidden = false
    this.#connect.addEventListener('click', () => void this.#showNames(() => this.#namesOfWallet()))
    element('find', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault()
      const wanted = element('wanted', HTMLInputElement).value.trim()
      if (isName(wanted)) location.hash = wanted
    })
    addEventListener('hashchange', () => this.#openLinked())
    this.#showUnsent()
    if (this.#served.server.profile === 'local') {
      this.#connect.classList.add('ghost')
      this.#connect.textContent = 'Show those in my wallet'
      await this.#showNames(() => this.#namesOfNetwork())
    } else
      this.#state.textContent =
        'They are in a wallet (BRC-100), in this browser or on this machine. The first time, it asks whether this page may see them.'
    this.#openLinked()
  }

  #openLinked(): void {
    const name = location.hash.slice(1)
    if (isName(name)) void this.#panel.open(name, { wallet: this.#wallet })
  }

  async #showNames(find: () => Promise<{ names: string[]; text: string }>): Promise<void> {
    this.#connect.disabled = true
    try {
      const { names, text } = await find()
      this.#state.textContent = text
      this.#list.replaceChildren(...rowsOf(names))
      this.#openLinked()
    } catch (error) {
      this.#state.textContent = reasonOf(error)
    } finally {
      this.#connect.disabled = false
    }
  }

  /** Names of a local network: anybody may move those without an owner. */
  async #namesOfNetwork(): Promise<{ names: string[]; text: string }> {
    const { url } = this.#served
    const asked = `${url}${PROFILES.local.gatewayPrefixes[0]}/newest/names?limit=${MOST_LISTED}`
    const { status, body } = await askJson({ url: asked, timeout: ANSWER_TIMEOUT })
    const said = namesAnswer.safeParse(body).data
    if (status !== 200 || said === undefined) throw unexpectedAnswer(url, { status, body })
    const text =
      'The money of this network is fake, and anybody may change names without an owner: here are the newest.'
    return { names: said.names.map(({ name }) => name), text }
  }

  async #namesOfWallet(): Promise<{ names: string[]; text: string }> {
    const wallet = await findWallet()
    const { outputs } = await wallet.listOutputs({
      ...{ basket: NAME_BASKET, includeCustomInstructions: true, limit: MOST_KEPT },
    })
    this.#wallet = wallet
    const kept = outputs.filter(({ satoshis, spendable }) => spendable && satoshis === 1)
    const names = [...new Set(kept.flatMap(({ customInstructions }) => nameIn(customInstructions)))]
    const coins = outputs
      .filter(({ satoshis }) => satoshis > 1)
      .reduce((sum, { satoshis }) => sum + satoshis, 0)
    const aside = coins === 0 ? '' : ` ${coins} satoshis of it are set aside for the next name that you mine.`
    const text = names.length === 0 ? 'There are no names in your wallet.' : 'These are in your wallet.'
    return { names, text: text + aside }
  }

  #showUnsent(): void {
    element('unsent', HTMLElement).replaceChildren(
      ...savedPayments('move').map((saved) => this.#unsentRow(saved)),
    )
  }

  #unsentRow({ name, txid, beef }: SavedPayment): HTMLElement {
    const said = make(
      'p',
      { role: 'status' },
      `A change of ${name} is signed, but this server does not have it.`,
    )
    const forget = button('Forget it', () => {
      forgetPayment('move', txid)
      row.remove()
    })
    const send = async (): Promise<void> => {
      again.disabled = true
      try {
        const wallet = await findWallet().catch(() => undefined)
        // A wallet that has sent it before refuses; even if it refuses for good, the server decides.
        if (wallet !== undefined) await sendWithWallet(wallet, { txid, description: `Send the name ${name}` })
        await submitMove(this.#served.url, { transaction: readBeefTransaction(beef, { txid }), beef })
        row.remove()
        location.hash = name
        this.#openLinked()
      } catch (error) {
        said.textContent = `A change of ${name} is signed, but this server does not have it: ${reasonOf(error)}`
        again.disabled = false
      }
    }
    const again = button('Send it again', () => void send(), '')
    const buttons = make('div', { class: 'cluster' }, again, forget)
    const row = make('div', { class: 'notice wait stack close' }, said, buttons)
    return row
  }
}

/** The name for which a wallet keeps an output. */
function nameIn(text = ''): string[] {
  try {
    const { keyID, name = keyID } = instructions.parse(JSON.parse(text))
    return isName(name) ? [name] : []
  } catch {
    // Another program's output.
    return []
  }
}

/** Names as links; prefixes of longer names are folded. */
function rowsOf(names: readonly string[]): HTMLElement[] {
  const all = new Set(names)
  const row = (name: string): HTMLElement =>
    make('li', {}, make('a', { class: 'name', href: `#${name}` }, name))
  const prefixes = new Set([...all].flatMap((name) => prefixesOf(name).filter((each) => all.has(each))))
  const whole = [...all].filter((name) => !prefixes.has(name))
  if (prefixes.size === 0) return whole.map(row)
  const folded = make(
    'details',
    {},
    make('summary', {}, `${prefixes.size} ${prefixes.size === 1 ? 'prefix' : 'prefixes'} of longer names`),
    make('ul', { class: 'rows' }, ...[...prefixes].sort().map(row)),
  )
  return [...whole.map(row), make('li', {}, folded)]
}

function prefixesOf(name: string): string[] {
  return Array.from({ length: name.length - 1 }, (_, at) => name.slice(0, at + 1))
}
