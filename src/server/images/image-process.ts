import { writeSync } from 'node:fs'
import { setPriority } from 'node:os'
import { buffer } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import type Sharp from 'sharp'
import type { WantedImage } from '../../gateway/images/images.js'
import { makeImage, type Outcome, RefusedImageError, restrict } from './make-image.js'

// Makes one image of a stranger's bytes and ends: `image-process.js <path of sharp> <what is wanted, as JSON>`. It reads the bytes from
// standard input, and writes a line of JSON and the image. Whatever happens to it happens to nobody else.

type Untimed<Each> = Each extends unknown ? Omit<Each, 'milliseconds'> : never

/** The most time of the processor that an image takes, in milliseconds. */
const MAX_MILLISECONDS = 10_000
/** Below the server, which answers others meanwhile. */
const PRIORITY = 5

const [path = '', asked = ''] = process.argv.slice(2)
setPriority(PRIORITY)
setInterval(() => {
  if (spent() < MAX_MILLISECONDS) return
  const seconds = MAX_MILLISECONDS / 1000
  writeSync(
    1,
    line({ refused: 'BAD_IMAGE', message: `this image takes more than ${seconds} seconds to make` }),
  )
  process.exit()
}, 100).unref()
const sharp: typeof Sharp = (await import(pathToFileURL(path).href)).default
restrict(sharp)
try {
  const made = await makeImage(sharp, await buffer(process.stdin), JSON.parse(asked) as WantedImage)
  process.stdout.write(line(made.outcome))
  process.stdout.write(made.bytes)
} catch (error) {
  if (!(error instanceof RefusedImageError)) throw error
  process.stdout.write(line({ refused: error.code, message: error.message }))
}

function line(outcome: Untimed<Outcome>): string {
  return `${JSON.stringify({ ...outcome, milliseconds: spent() } satisfies Outcome)}\n`
}

/** The time of the processor that this process has taken, in milliseconds. */
function spent(): number {
  const { user, system } = process.cpuUsage()
  return Math.ceil((user + system) / 1000)
}
