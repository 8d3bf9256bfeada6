import { encodeAddress, type Network, p2pkhOwner } from '../../../backend/src/protocol/address.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { button, make } from './elements.js'
import type { ShownMint } from './mining-run.js'

export type CardState =
  | { kind: 'sending' }
  /** The server has it: the name is minted. */
  | { kind: 'known' }
  /** Another transaction, `by`, gives the name to the same owner, so this one will never count. */
  | { kind: 'by-other'; by: string }
  /** Another mint has spent the node. */
  | { kind: 'lost' }
  /** The server does not have it; `again` submits it once more. */
  | { kind: 'unsent'; reason: string; again: () => void }

const UNPAID =
  'The node is unlocked, but nobody pays yet. The node supplies 1 satoshi and the outputs need 3: add inputs with 2 more satoshis and the fee, and sign them. You can add inputs (the signature is ANYONECANPAY) but no outputs: the node’s signature covers them all, so there is no change, and everything beyond the outputs is fee. Send it while the node is live: as soon as somebody mines any character from it, this solution is worthless.'
const BOUND =
  'Only the owner below can use this solution: no matter who pays, the name is locked to that address.'
const UNBOUND =
  'Show it to nobody before it is sent: in this tree, anyone who sees the solution can mint the name for another owner.'

export interface CardContent {
  name: string
  txid: string
  solution?: readonly (readonly [term: string, text: string])[]
  /** As hex. */
  transaction?: string
  /** Present if the mint is paid for. */
  beef?: Uint8Array
  isBound?: boolean
}

export function cardOf(
  { mint, plan, transaction, beef }: ShownMint,
  { network }: { network: Network },
): CardContent {
  return {
    name: mint.name,
    isBound: plan.deployment.covenantVersion !== 1,
    txid: transaction.id('hex'),
    solution: [
      ['Node', formatOutpoint(plan.node.outpoint)],
      ['Domain', mint.domain === '' ? 'the root (empty)' : mint.domain],
      ['Character', mint.character],
      ['Owner', ownerText(mint.ownerLock, network)],
      ['Nonce', toHex(mint.nonce)],
      ['New seed', toHex(mint.seed)],
    ],
    transaction: transaction.toHex(),
    ...(beef && { beef }),
  }
}

/** The address that a lock pays to; any other lock as hex. */
function ownerText(lock: Uint8Array, network: Network): string {
  const owner = p2pkhOwner(lock)
  return owner === undefined ? toHex(lock) : encodeAddress(owner, network)
}

export class MintCard {
  readonly root: HTMLElement
  readonly name: string
  readonly txid: string
  readonly #badge = make('p', { class: 'badge' })

  constructor({ name, txid, solution = [], transaction, beef, isBound = false }: CardContent) {
    this.name = name
    this.txid = txid
    const title = `mint-${txid}`
    const details = make(
      'details',
      {},
      make('summary', {}, 'Its solution and its transaction'),
      make('dl', { class: 'facts' }, ...solution.map(([term, text]) => field(term, text))),
    )
    this.root = make(
      'article',
      { class: 'card', 'aria-labelledby': title },
      make('h2', { id: title }, `The mint of ${name}`),
      this.#badge,
      details,
    )
    if (transaction !== undefined)
      details.append(rawField('Transaction', { id: `transaction-${txid}`, hex: transaction }))
    if (beef === undefined) {
      // Somebody else is to pay for this mint, and needs its transaction.
      details.open = true
      this.#badge.dataset.kind = 'unpaid'
      this.#badge.textContent = `${isBound ? BOUND : UNBOUND} ${UNPAID}`
      return
    }
    details.append(
      make('dl', { class: 'facts' }, field('Transaction id', txid), field('Origin of the name', `${txid}_2`)),
      rawField('BEEF', { id: `beef-${txid}`, hex: toHex(beef) }),
    )
    this.show({ kind: 'sending' })
  }

  show(state: CardState): void {
    this.#badge.dataset.kind = state.kind
    this.#badge.classList.toggle('bad', !['sending', 'known'].includes(state.kind))
    const link = make('a', { href: `/name/${this.name}` }, this.name)
    if (state.kind === 'sending') this.#badge.replaceChildren('Paid for. Submitting it to this server…')
    else if (state.kind === 'known') this.#badge.replaceChildren('This server has it: ', link, ' is minted.')
    else if (state.kind === 'by-other')
      this.#badge.replaceChildren(
        'Lost, but ',
        link,
        ` is minted for the same owner by another transaction, in ${formatOutpoint({ txid: state.by, vout: 2 })}. A wallet does not know that output.`,
      )
    else if (state.kind === 'lost')
      this.#badge.replaceChildren('Lost: another mint has spent the node, so this one gives you no name.')
    else
      this.#badge.replaceChildren(
        `Paid for, but this server does not have it: ${state.reason} `,
        button('Submit again', state.again),
      )
  }
}

function field(term: string, text: string): HTMLElement {
  return make('div', {}, make('dt', {}, term), make('dd', { 'data-field': term }, text))
}

/** Hex with a copy button; without access to the clipboard, the button selects the text. */
function rawField(label: string, { id, hex }: { id: string; hex: string }): HTMLElement {
  const text = make('textarea', { id, readonly: '', spellcheck: 'false' }, hex)
  const said = make('span', { role: 'status', class: 'hint' })
  const copy = button(`Copy ${label === 'BEEF' ? label : label.toLowerCase()}`, async () => {
    text.select()
    try {
      await navigator.clipboard.writeText(hex)
      said.textContent = ' Copied.'
    } catch {
      // Pages without TLS have no clipboard, and the user may have denied access.
      said.textContent = ' Selected: copy it with the keyboard.'
    }
  })
  return make('div', { class: 'field' }, make('label', { for: id }, `${label}, hex`), text, copy, said)
}
