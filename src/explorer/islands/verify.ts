import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import '../mine-page/no-eval.js'
import { escapeInvisible } from '../../../backend/src/protocol/invisible.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { verifyProvenance } from '../../client/verify-history.js'
import { TIP_SEQUENCE, verifyOrdinal } from '../../client/verify-output.js'
import { verifiedMint } from '../../mining/live-node.js'
import { HttpMineIndex } from '../../mining/mine-index.js'
import { serverDeployment } from '../../mining/server-deployment.js'
import { make } from '../mine-page/elements.js'

// Verifies a name or an ordinal with the code of `minetree/client`, and shows each step in words.

const service = new URL('..', import.meta.url).href.replace(/\/$/, '')
/** The longest proof of an ordinal's moves that is read, in bytes. */
const MAX_BYTES = 32 * 1024 * 1024

class Steps {
  readonly #list: HTMLElement

  constructor(place: HTMLElement) {
    this.#list = make('ol', { class: 'steps', 'aria-live': 'polite' })
    place.replaceChildren(this.#list)
  }

  async take<Result>(
    title: string,
    step: () => Promise<Result>,
    say: (result: Result) => string,
  ): Promise<Result> {
    const small = make('small', {}, '…')
    const item = make('li', { class: 'open' }, title, small)
    this.#list.append(item)
    try {
      const result = await step()
      item.className = 'now'
      small.textContent = say(result)
      return result
    } catch (error) {
      item.className = 'bad'
      small.textContent = `Failed: ${messageOf(error)}`
      throw error
    }
  }

  say(title: string, text: string): void {
    this.#list.append(make('li', { class: 'open' }, title, make('small', {}, text)))
  }
}

async function bytesAt(path: string): Promise<Uint8Array> {
  const answer = await fetch(path, { headers: { Accept: 'application/octet-stream' } })
  if (!answer.ok) {
    const { error } = (await answer.json().catch(() => ({}))) as { error?: string }
    throw new Error(error ?? `the server answers ${answer.status}`)
  }
  if (Number(answer.headers.get('Content-Length')) > MAX_BYTES)
    throw new Error('the proof is larger than 32 MiB')
  return new Uint8Array(await answer.arrayBuffer())
}

/** A tracker that accepts every merkle root, and the heights of those. */
function rootsSeen() {
  const heights = new Set<number>()
  return {
    heights,
    tracker: {
      async isValidRootForHeight(_root: string, height: number): Promise<boolean> {
        heights.add(height)
        return true
      },
    },
  }
}

/** Verifies the subject of a button, and shows each step in the element that the button controls. */
export async function verify(button: HTMLButtonElement): Promise<void> {
  const { verify: subject = '', origin = '', tip = '', names = '', gateway = '' } = button.dataset
  const place = document.getElementById(button.getAttribute('aria-controls') ?? '')
  const badge = document.getElementById('verdict')
  if (place === null) return
  place.hidden = false
  const started = monotonic()
  const steps = new Steps(place)
  const { heights, tracker } = rootsSeen()
  try {
    let isLocal = false
    if (names !== '') {
      const { deployment, profile } = await steps.take(
        'The tree',
        () => serverDeployment(service),
        ({ deployment }) =>
          `This server says its genesis is ${formatOutpoint(deployment.genesis)}. Compare that with what you know: all else follows from it.`,
      )
      isLocal = profile === 'local'
      await steps.take(
        'The line of mints',
        async () => {
          const index = new HttpMineIndex({ url: service })
          const mint = await verifiedMint({ name: subject, deployment, chainTracker: tracker, index })
          if (mint === undefined) throw new Error(`the server shows no mint of ${subject}`)
          return mint
        },
        ({ line }) =>
          `${line.map(({ name }) => name).join(', ')}: each spends a genuine node, by a proof of work of ${deployment.difficulty} bits, and follows every rule of the covenant.`,
      )
    }
    if (origin !== '' && tip !== '') {
      await steps.take(
        'The life of its ordinal',
        async () => {
          const provenance = await bytesAt(`${gateway}/provenance/${tip}`)
          return await verifyProvenance({
            ...{ provenance, origin: parseOutpoint(origin), chainTracker: tracker, maxBytes: MAX_BYTES },
          })
        },
        ({ sequence }) =>
          sequence === 0
            ? 'It has not moved since its mint.'
            : `${sequence} ${sequence === 1 ? 'step' : 'steps'} from the origin to the tip, each by the arithmetic of ordinals (BRC-159).`,
      )
      await steps.take(
        'What it shows',
        async () =>
          await verifyOrdinal({
            proof: await bytesAt(`${gateway}/proof/${tip}:${TIP_SEQUENCE}`),
            ...{ asked: parseOutpoint(tip), sequence: TIP_SEQUENCE },
            isMintOf: async (outpoint) => formatOutpoint(outpoint) === origin,
            ...{ chainTracker: tracker, maxBytes: MAX_BYTES },
          }),
        ({ content: { outpoint, content } }) =>
          `${content?.body.length ?? 0} bytes of ${escapeInvisible(content?.contentType ?? 'nothing')}, read from ${outpoint.txid}.`,
      )
    }
    steps.say('Blocks', blocksText(heights, isLocal))
    steps.say(
      'Not shown',
      'That the tip is still unspent: no proof can show that, so you rely on this server for it.',
    )
    const took = Math.max(1, Math.round(monotonic() - started))
    if (badge !== null) {
      badge.className = 'badge'
      badge.textContent = `Genuine, checked here in ${took} ms`
    }
  } catch (error) {
    if (badge !== null) {
      badge.className = 'badge bad'
      badge.textContent = `Not verified: ${messageOf(error).slice(0, 80)}`
    }
  }
}

function blocksText(heights: Set<number>, isLocal: boolean): string {
  if (isLocal) return 'A local network mines its own blocks without any work, and its coins are fake.'
  if (heights.size === 0)
    return 'None of its transactions is in a block yet: another transaction may still replace it.'
  const sorted = [...heights].sort((a, b) => a - b)
  const some = sorted.length > 6 ? [...sorted.slice(0, 3), '…', ...sorted.slice(-2)] : sorted
  return `Its merkle paths lead to ${sorted.length === 1 ? 'the block' : `${sorted.length} blocks`} at ${some.join(', ')}. A browser has no block headers: to check the roots as well, run “minetree verify” with a chain tracker that you trust.`
}
