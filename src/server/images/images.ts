import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Logger } from 'pino'
import { z } from 'zod'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { type Promised, promised } from '../../../backend/src/writer/calls.js'
import { imagesFolder } from '../../../backend/src/writer/local-writer.js'
import { AnswerError } from '../../gateway/http/errors.js'
import type {
  AskedImage,
  ImageMaker,
  ImageSource,
  MadeImage,
  WantedImage,
} from '../../gateway/images/images.js'
import type { Config } from '../config/config.js'
import { storeFolder } from '../config/place.js'
import type { CacheUse } from '../telemetry/metrics.js'
import { ImageCache } from './image-cache.js'

/** The program that makes an image, compiled beside this module or bundled with it. */
export const IMAGE_PROGRAM = new URL('./image-process.js', import.meta.url)

const MAX_WAITING = 32
/** How long the process of an image may run, in milliseconds; it ends itself earlier unless the machine is busy or it hangs. */
const PATIENCE = 30_000
/** The most CPU time for an image, in milliseconds. */
const MAX_MILLISECONDS = 10_000
/** The longest resulting image, in bytes, and the heap of its process besides the image, in MiB. */
const MAX_MADE_BYTES = 16 * 1024 * 1024
const MAX_HEAP_MIB = 64

const milliseconds = z.number()
/** The output of the process, which a stranger's bytes may have taken over. */
const outcomeShape = z.union([
  z.strictObject({
    type: z.enum(['image/jpeg', 'image/png', 'image/webp', 'image/avif']),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
    /** See `MadeImage`. */
    frames: z.tuple([z.int(), z.int()]).optional(),
    milliseconds,
  }),
  z.strictObject({ refused: z.enum(['UNSUPPORTED_IMAGE', 'BAD_IMAGE']), message: z.string(), milliseconds }),
])

export type Outcome = z.output<typeof outcomeShape>

interface Read {
  outcome: Outcome
  body: Buffer
}

interface Job extends Promised<Read> {
  source: ImageSource
  wanted: WantedImage
  isStarted: boolean
  /** The `charge` of each waiting request, with its client and turn. */
  charges: Map<AskedImage['charge'], { client: string; turn: number }>
}

type Options = Parameters<typeof storeFolder>[0] & {
  limits: Pick<Config['limits'], 'maxImageCacheBytes'>
  clientOf: (request: AskedImage['request']) => string
  patience?: number
  maxMilliseconds?: number
  logger: Logger
  program: URL
}

/** Prepares to make images; undefined if `sharp` is not installed, or there is no room for images. */
export function openImages(options: Options): Images | undefined {
  if (options.limits.maxImageCacheBytes === 0) return undefined
  try {
    return new Images(createRequire(import.meta.url).resolve('sharp'), options)
  } catch {
    return undefined
  }
}

/** Makes one image after another, each in its own process, and keeps them on disk. */
export class Images implements ImageMaker {
  readonly use: CacheUse = { hits: 0, misses: 0 }
  private readonly cache: ImageCache
  /** In the order in which they came. */
  private readonly jobs = new Map<string, Job>()
  /** The turn of the image that is being made. */
  private turn = 0
  private readonly closing = new AbortController()
  private running: Promise<void> | undefined

  constructor(
    private readonly sharp: string,
    private readonly options: Options,
  ) {
    this.cache = new ImageCache(imagesFolder(storeFolder(options)), options.limits.maxImageCacheBytes)
  }

  async image(source: ImageSource, asked: AskedImage): Promise<MadeImage> {
    const name = nameOf(source, asked.wanted)
    const kept = await this.cache.get(name)
    const known = kept && read(kept)
    this.use[known === undefined ? 'misses' : 'hits']++
    const { outcome, body } = known ?? (await this.made(name, source, asked))
    if ('refused' in outcome) throw new AnswerError(outcome.refused, outcome.message)
    return { ...outcome, body }
  }

  get waiting(): number {
    return this.jobs.size
  }

  async forget(sha256: string): Promise<void> {
    await this.cache.delete((name) => name.startsWith(sha256))
  }

  async close(): Promise<void> {
    this.closing.abort(new AnswerError('NOT_READY', 'the host is shutting down'))
    await this.running
  }

  private async made(name: string, source: ImageSource, asked: AskedImage): Promise<Read> {
    const { wanted, request, signal, charge } = asked
    signal.throwIfAborted()
    const client = this.options.clientOf(request)
    const turn = this.nextTurn(client)
    const job = this.jobs.get(name) ?? this.begin(name, { source, wanted, turn })
    job.charges.set(charge, { client, turn })
    this.running ??= this.run()
    const leave = (): void => {
      if (job.isStarted) return
      job.charges.delete(charge)
      if (job.charges.size > 0) return
      this.jobs.delete(name)
      job.reject(signal.reason)
    }
    signal.addEventListener('abort', leave)
    try {
      return await job.promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** The turn of a client's next image: a turn later for each image that it waits for already, as clients take turns. */
  private nextTurn(client: string): number {
    const own = [...this.jobs.values()].filter(({ charges }) =>
      [...charges.values()].some((each) => each.client === client),
    )
    return this.turn + 1 + own.length
  }

  private begin(name: string, { turn, ...asked }: Pick<Job, 'source' | 'wanted'> & { turn: number }): Job {
    if (this.jobs.size >= MAX_WAITING) this.makeRoom(turn)
    const job: Job = { ...asked, isStarted: false, charges: new Map(), ...promised<Read>() }
    this.jobs.set(name, job)
    return job
  }

  /** Removes the last job if its turn is later, so that a few clients cannot keep others out. @throws AnswerError */
  private makeRoom(turn: number): void {
    const busy = new AnswerError('NOT_READY', `${MAX_WAITING} images are waiting to be made; try again`)
    const [name, last] = this.inTurn().at(-1) ?? []
    if (name === undefined || last === undefined || turnOf(last) <= turn) throw busy
    this.jobs.delete(name)
    last.reject(busy)
  }

  /** The waiting jobs by turn, then in the order in which they came. */
  private inTurn(): [name: string, job: Job][] {
    const waiting = [...this.jobs].filter(([, { isStarted }]) => !isStarted)
    return waiting.sort(([, one], [, other]) => turnOf(one) - turnOf(other))
  }

  private async run(): Promise<void> {
    for (let [next] = this.inTurn(); next !== undefined; [next] = this.inTurn()) {
      const [name, job] = next
      job.isStarted = true
      this.turn = turnOf(job)
      try {
        const made = await this.work(job)
        // Stored before any client gets it, so that one that finds its content purged can remove it. The disk may be full.
        await this.cache.set(name, made.whole).catch(() => {})
        job.resolve(made)
      } catch (error) {
        job.reject(error)
      } finally {
        this.jobs.delete(name)
      }
    }
    this.running = undefined
  }

  /** Runs the process. Its output is stored unchanged, including refusals. */
  private async work({ source, wanted, charges }: Job): Promise<Read & { whole: Buffer }> {
    const { signal } = this.closing
    signal.throwIfAborted()
    const { logger, program, patience = PATIENCE, maxMilliseconds = MAX_MILLISECONDS } = this.options
    const charge = (milliseconds: number): void => {
      for (const each of charges.keys()) each(milliseconds)
    }
    // This stream fails if the store has too few bytes.
    const chunks = Readable.from(source.chunks())
    const running = promisify(execFile)(
      process.execPath,
      [
        ...[`--max-old-space-size=${MAX_HEAP_MIB}`, fileURLToPath(program)],
        ...[this.sharp, JSON.stringify(wanted), String(maxMilliseconds)],
      ],
      {
        // No environment: decoders of images have had security holes.
        ...{ env: {}, encoding: 'buffer', signal, timeout: patience, killSignal: 'SIGKILL' },
        maxBuffer: MAX_MADE_BYTES,
      },
    )
    const { stdin } = running.child
    if (stdin === null) throw new Error('the process has no standard input')
    const [fed, ran] = await Promise.allSettled([pipeline(chunks, stdin), running])
    // A process that has read enough closes its input; any other error is the store's.
    if (fed.status === 'rejected' && !isClosedPipe(fed.reason)) throw fed.reason
    if (ran.status === 'fulfilled') {
      const made = read(ran.value.stdout)
      charge(made?.outcome.milliseconds ?? patience)
      if (made === undefined) throw new Error('the image process returned no readable output')
      return { ...made, whole: ran.value.stdout }
    }
    signal.throwIfAborted()
    const {
      code,
      signal: ended,
      killed,
      stdout,
    } = ran.reason as { code?: unknown; signal?: string; killed?: boolean; stdout?: Buffer }
    const said = stdout && read(stdout)
    // The process ends itself if an image takes too long.
    if (said !== undefined && 'refused' in said.outcome) {
      charge(said.outcome.milliseconds)
      return { ...said, whole: stdout as Buffer }
    }
    charge(patience)
    if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER')
      throw new AnswerError('BAD_IMAGE', `the image would have more than ${MAX_MADE_BYTES} bytes`)
    if (killed) throw new AnswerError('NOT_READY', `the image was not made within ${patience / 1000} seconds`)
    if (!ended) throw ran.reason
    logger.warn({ sha256: source.sha256, signal: ended }, 'the process that reads an image has crashed')
    throw new AnswerError('BAD_IMAGE', `the process that reads the image has ended: ${ended}`)
  }
}

/** The earliest turn of the requests that still wait for a job. */
function turnOf({ charges }: Job): number {
  return Math.min(...[...charges.values()].map(({ turn }) => turn))
}

function isClosedPipe(error: unknown): boolean {
  return /^(?:EPIPE|ECONNRESET|ERR_STREAM_PREMATURE_CLOSE)$/.test(String((error as { code?: unknown }).code))
}

/** The name of a file: the hash first, then everything that affects the image. */
function nameOf({ sha256 }: ImageSource, wanted: WantedImage): string {
  const { width = '', height = '', fit, gravity, quality, format } = wanted
  return `${sha256}-${width}x${height}-${fit}-${gravity}-${quality}.${format}`
}

/** A line of JSON, followed by the image; undefined if they are incomplete, for instance after a power failure. */
function read(made: Buffer): Read | undefined {
  const end = made.indexOf('\n')
  try {
    const outcome = outcomeShape.parse(JSON.parse(made.toString('utf8', 0, end)))
    const body = made.subarray(end + 1)
    const isWhole = 'refused' in outcome || sha256(body).toString('hex') === outcome.sha256
    return isWhole ? { outcome, body } : undefined
  } catch {
    return undefined
  }
}
