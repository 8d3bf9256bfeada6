import { addressLock, encodeAddress } from '../../../backend/src/protocol/address.js'
import { isHostLabel } from '../../../backend/src/protocol/host-label.js'
import { ownerOf } from '../../../backend/src/protocol/inscription.js'
import type { BindingWallet, NameMove } from '../../identity/move-name.js'
import { highestFee } from '../../payments/draft.js'
import { NOBODY } from '../../payments/fake.js'
import { DEFAULT_FEE_RATE } from '../../payments/key.js'
import type { FolderEntry } from '../../publish/content-tree.js'
import type { PublishOutput } from '../../publish/inscribe.js'
import type { SiteChange } from '../../publish/plan.js'
import { transactionSize } from '../../publish/transaction-size.js'
import { element, make, reasonOf } from '../mine-page/elements.js'
import { count } from '../mine-page/figures.js'
import { savedPayments } from '../mine-page/saved-payments.js'
import { type Chosen, chosenIn, droppedIn, readChosen } from './chosen-files.js'
import { boundLock, moveName, type OpenedName, openName, planOn, publishing, type Served } from './deeds.js'

/** The longest transaction, in bytes: a wallet returns it as JSON, and this browser keeps it until it is sent. */
const MOST_BYTES = 2 * 1024 * 1024

const NEEDS_WALLET = 'Only a wallet with its key can change it: show the names in yours.'

interface Deed {
  doing: string
  done: string
  isIdentityNeeded: boolean
  bytes?: number
  move(opened: OpenedName): Promise<Pick<NameMove, 'lock' | 'behind' | 'outputs'>>
}

export class NamePanel {
  readonly #served: Served
  readonly #onFailure: () => void
  readonly #section = element('opened', HTMLElement)
  readonly #state = element('opened-state', HTMLElement)
  readonly #deeds = element('deeds', HTMLElement)
  readonly #error = element('deed-error', HTMLElement)
  readonly #folder = element('folder', HTMLInputElement)
  readonly #drop = element('drop', HTMLElement)
  readonly #plan = element('plan', HTMLElement)
  readonly #sure = element('sure', HTMLElement)
  readonly #receiver = element('receiver', HTMLInputElement)
  #opened: OpenedName | undefined
  /** The site to publish, and the size of its transaction. */
  #site: { site: FolderEntry; bytes: number } | undefined
  #isBusy = false
  /** Whether the wallet has shown its identity key to this page. */
  #isIdentityKnown = false
  /** The number of names that were opened: answers about earlier ones come too late. */
  #turn = 0

  /** @param options.onFailure Called when a change was not made, or was signed but not sent. */
  constructor(served: Served, { onFailure }: { onFailure: () => void }) {
    this.#served = served
    this.#onFailure = onFailure
    this.#folder.setAttribute('webkitdirectory', '')
    this.#folder.addEventListener('change', () => {
      const { files } = this.#folder
      if (files !== null && files.length > 0) void this.#choose(async () => chosenIn(files))
      this.#folder.value = ''
    })
    this.#listenForDrops()
    element('publish', HTMLButtonElement).addEventListener('click', () => void this.#publish())
    element('bind', HTMLButtonElement).addEventListener('click', () => void this.#bind())
    element('give', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault()
      this.#askWhetherSure()
    })
    element('give-now', HTMLButtonElement).addEventListener('click', () => void this.#give())
    element('keep', HTMLButtonElement).addEventListener('click', () => {
      this.#sure.hidden = true
      this.#receiver.focus()
    })
  }

  #listenForDrops(): void {
    this.#drop.addEventListener('dragover', (event) => {
      event.preventDefault()
      this.#drop.dataset.over = ''
    })
    this.#drop.addEventListener('dragleave', () => delete this.#drop.dataset.over)
    this.#drop.addEventListener('drop', (event) => {
      event.preventDefault()
      delete this.#drop.dataset.over
      const { dataTransfer } = event
      if (dataTransfer !== null) void this.#choose(() => droppedIn(dataTransfer.items))
    })
  }

  /** Shows a name, and verifies it. @param options.said The message about its last change. */
  async open(
    name: string,
    { wallet, said }: { wallet: BindingWallet | undefined; said?: string },
  ): Promise<void> {
    if (this.#isBusy) return
    const turn = ++this.#turn
    const { url, server } = this.#served
    this.#opened = undefined
    this.#section.hidden = false
    this.#deeds.hidden = true
    this.#error.hidden = true
    this.#clear()
    element('opened-name', HTMLElement).textContent = name
    element('opened-page', HTMLAnchorElement).href = `${url}/name/${name}`
    element('mine-on', HTMLAnchorElement).href = `${url}/mine?name=${name}`
    this.#showAddress(name)
    if (wallet === undefined && server.profile !== 'local') {
      this.#say(NEEDS_WALLET)
      return
    }
    this.#say(said ?? 'Verifying it, from the genesis to where it is now…')
    try {
      const opened = await openName(this.#served, name, wallet)
      if (turn !== this.#turn) return
      this.#opened = opened
      const isChangeable = wallet !== undefined || ownerOf(opened.coin.lockingScript) === NOBODY
      const texts = [said ?? '', `Verified in this browser: ${this.#holderText(opened)}.`]
      this.#say([...texts, isChangeable ? '' : NEEDS_WALLET].join(' ').trim())
      if (isChangeable) this.#showDeeds(opened)
    } catch (error) {
      if (turn === this.#turn) this.#fail(error)
    }
  }

  #say(text: string): void {
    this.#state.textContent = text
  }

  #fail(error: unknown): void {
    this.#error.textContent = reasonOf(error)
    this.#error.hidden = false
  }

  #clear(): void {
    this.#site = undefined
    this.#plan.hidden = true
    this.#sure.hidden = true
    this.#receiver.value = ''
  }

  #showAddress(name: string): void {
    const place = element('address', HTMLElement)
    const { hosts } = this.#section.dataset
    if (hosts === undefined || !isHostLabel(name)) {
      place.replaceChildren()
      return
    }
    const host = `${name}.${hosts}`
    place.replaceChildren('Its site is at ', make('a', { href: `//${host}/` }, host), '.')
  }

  #holderText({ name, coin, checked: { identity } }: OpenedName): string {
    if (identity.state === 'bound') return `${name} is bound to ${identity.identityKey.slice(0, 12)}…`
    const owner = ownerOf(coin.lockingScript)
    if (owner === NOBODY) return `nobody holds ${name}, so anybody here may change it`
    return owner === undefined
      ? `${name} is genuine`
      : `${encodeAddress(owner, this.#served.server.network)} holds ${name}`
  }

  #showDeeds({ wallet, checked }: OpenedName): void {
    const isBound = checked.identity.state === 'bound'
    element('receiver-hint', HTMLElement).textContent = isBound
      ? 'It will be bound to no identity.'
      : 'Their address for ordinals, as shown by their wallet or the command line.'
    element('bind-text', HTMLElement).textContent =
      wallet === undefined
        ? 'Identities belong to wallets: without a wallet, a name cannot be bound.'
        : isBound
          ? 'Anyone who looks the name up finds your identity key.'
          : `Anyone who looks the name up will find your identity key. ${this.#prompts({ isIdentityNeeded: true })}`
    const button = element('bind', HTMLButtonElement)
    button.hidden = wallet === undefined
    button.textContent = isBound ? 'Unbind it' : 'Bind it to my identity'
    this.#deeds.hidden = false
  }

  #prompts({ isIdentityNeeded }: { isIdentityNeeded: boolean }): string {
    return promptsText({
      isFake: this.#opened?.wallet === undefined,
      isIdentityNeeded: isIdentityNeeded && !this.#isIdentityKnown,
    })
  }

  get #isBound(): boolean {
    return this.#opened?.checked.identity.state === 'bound'
  }

  /** Shows the chosen files: what is new, and what it costs. */
  async #choose(choose: () => Promise<Chosen>): Promise<void> {
    const opened = this.#opened
    if (this.#isBusy || opened === undefined) return
    this.#error.hidden = true
    this.#plan.hidden = true
    try {
      const chosen = await choose()
      const site = await readChosen(chosen)
      const { outputs, changes, isUnchanged } = planOn(this.#served, opened, { site })
      if (opened !== this.#opened) return
      if (isUnchanged) throw new Error(`${opened.name} shows this already: there is nothing to publish`)
      const bytes = bytesOf(outputs)
      if (bytes > MOST_BYTES)
        throw new Error(
          `it needs a transaction of ${count(bytes)} bytes, but this page makes at most ${count(MOST_BYTES)}: use “minetree publish --name”`,
        )
      this.#site = { site, bytes }
      const fee = Math.ceil((bytes * DEFAULT_FEE_RATE) / 1000)
      const cost = `, for about ${count(fee)} satoshis at ${DEFAULT_FEE_RATE} for 1,000 bytes`
      element('changes', HTMLElement).replaceChildren(...rowsOf(changes, chosen.leftOut))
      element('plan-text', HTMLElement).textContent =
        `One transaction of ${count(bytes)} bytes${opened.wallet === undefined ? '' : cost}. ${this.#prompts({ isIdentityNeeded: this.#isBound })}`
      this.#plan.hidden = false
      element('publish', HTMLButtonElement).focus()
    } catch (error) {
      this.#fail(error)
    }
  }

  async #publish(): Promise<void> {
    if (this.#site === undefined) return
    const { site, bytes } = this.#site
    await this.#do({
      doing: 'Publishing…',
      done: 'Published.',
      isIdentityNeeded: this.#isBound,
      bytes,
      move: (opened) => publishing(this.#served, opened, site),
    })
  }

  async #bind(): Promise<void> {
    const isBound = this.#isBound
    const wallet = this.#opened?.wallet
    if (wallet === undefined) return
    await this.#do({
      doing: isBound ? 'Unbinding…' : 'Binding…',
      done: isBound ? 'Unbound.' : 'Bound.',
      isIdentityNeeded: true,
      move: async (opened) => ({ lock: await boundLock(opened, { wallet, isBound: !isBound }) }),
    })
  }

  /** The lock of the address in the field; undefined, with an error shown, if it is invalid. */
  #receiverLock(): Uint8Array | undefined {
    const { network } = this.#served.server
    const lock = addressLock(this.#receiver.value.trim(), network)
    if (typeof lock !== 'string') return lock
    this.#receiver.setAttribute('aria-invalid', 'true')
    this.#receiver.focus()
    this.#fail(
      lock === 'other network'
        ? `This server is on the ${network} network: use an address of that network.`
        : 'This is not a P2PKH address: check that it is complete.',
    )
    return undefined
  }

  #askWhetherSure(): void {
    this.#error.hidden = true
    this.#receiver.removeAttribute('aria-invalid')
    const name = this.#opened?.name
    if (name === undefined || this.#receiverLock() === undefined) return
    element('receiver-hint', HTMLElement).textContent =
      `${name} will be theirs, with everything published on it, and you cannot take it back. ${this.#prompts({ isIdentityNeeded: this.#isBound })}`
    const button = element('give-now', HTMLButtonElement)
    button.textContent = `Give ${name.length > 20 ? 'it' : name} away`
    this.#sure.hidden = false
    button.focus()
  }

  async #give(): Promise<void> {
    const lock = this.#receiverLock()
    if (lock === undefined) return
    await this.#do({
      doing: 'Giving it away…',
      done: 'Given away.',
      isIdentityNeeded: this.#isBound,
      move: async () => ({ lock }),
    })
  }

  async #do({ doing, done, isIdentityNeeded, bytes = MOVE_BYTES, move }: Deed): Promise<void> {
    const opened = this.#opened
    if (this.#isBusy || opened === undefined) return
    this.#isBusy = true
    this.#error.hidden = true
    this.#deeds.hidden = true
    this.#say(opened.wallet === undefined ? doing : `${doing} Look at your wallet.`)
    // The pressed button is hidden now, and would lose the keyboard focus.
    element('opened-name', HTMLElement).focus({ preventScroll: true })
    this.#state.scrollIntoView({ block: 'nearest', behavior: 'instant' })
    const { name } = opened
    try {
      const maxFee = highestFee(bytes, DEFAULT_FEE_RATE)
      await moveName(this.#served, opened, { ...(await move(opened)), maxFee })
      if (isIdentityNeeded) this.#isIdentityKnown = true
      this.#isBusy = false
      await this.open(name, { wallet: opened.wallet, said: done })
    } catch (error) {
      const isSigned = savedPayments('move').some((each) => each.name === name)
      this.#say(
        isSigned
          ? `A change of ${name} is signed and kept: send it again above.`
          : `${name} is not changed, as far as this page knows.`,
      )
      this.#deeds.hidden = false
      this.#fail(error)
      this.#onFailure()
    } finally {
      this.#isBusy = false
    }
  }
}

/** The size of a transaction that spends the name and a coin. */
const bytesOf = (outputs: readonly Pick<PublishOutput, 'lockingScript'>[]): number =>
  transactionSize({ inputs: 2, outputs })
/** The size of a move without content, with room for the fields of an identity binding. */
const MOVE_BYTES = bytesOf([{ lockingScript: new Uint8Array(1000) }])

const MOST_LISTED = 8

/** A row for each change; kept files are only counted. */
function rowsOf(changes: readonly SiteChange[], leftOut: readonly string[]): HTMLElement[] {
  const row = (path: string, what: string): HTMLElement =>
    make('li', {}, make('bdi', {}, path), make('small', {}, what))
  const news = changes.filter(({ kind }) => kind !== 'kept')
  const kept = changes.length - news.length
  const more = news.length - MOST_LISTED
  return [
    ...news
      .slice(0, MOST_LISTED)
      .map(({ path, kind, bytes }) =>
        row(path, kind === 'removed' ? 'removed' : `${kind}, ${count(bytes)} bytes`),
      ),
    ...(more > 0 ? [make('li', {}, `and ${count(more)} more`)] : []),
    ...(kept > 0 ? [row(`${count(kept)} kept`, 'not paid for again')] : []),
    ...leftOut.slice(0, MOST_LISTED).map((path) => row(path, 'hidden: left out')),
  ]
}

/**
 * Says how often the wallet will ask its user. By wallet-toolbox (`WalletPermissionsManager`), a wallet asks about every
 * transaction that costs something, and once about a basket and about the identity key; but not about keys of level 0, signatures
 * by these, and sending alone.
 *
 * @param change.isIdentityNeeded Whether the change needs the identity key, which this page has not seen yet.
 */
function promptsText({ isFake, isIdentityNeeded }: { isFake: boolean; isIdentityNeeded: boolean }): string {
  if (isFake) return 'The money of this network is fake: no wallet is asked, and nothing is paid.'
  if (!isIdentityNeeded) return 'Your wallet will ask you once, for the payment.'
  return 'Your wallet will ask you twice: the first time whether this page may see your identity key, and then for the payment.'
}
