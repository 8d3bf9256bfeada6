import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'

const { exp, min, PI, round, sin } = Math

const RATE = 22_050
/** Bytes per sample: PCM, 16 bits, one channel. */
const BYTES = 2
/** The first note, in hertz: A3. */
const KEYNOTE = 220
/** The melody, in semitones above the keynote: a pentatonic scale, in which all notes go together. */
const MELODY = [0, 4, 7, 12, 9, 7, 4, 0]
/** From one note to the next, and how long each rings, in seconds. */
const BEAT = 0.6
const RING = 1.8
/** The volume of each overtone, starting with the note itself. */
const OVERTONES = [1, 0.4, 0.15]
/** How fast a note fades, and how long its attack is in seconds, without which it would click. */
const DECAY = 3.5
const SWELL = 0.01
/** Low enough that overlapping notes do not clip. */
const VOLUME = 0.35
const LOUDEST = 32_767

/** A melody of a few seconds as a WAV file; always the same bytes. */
export function melody(): Uint8Array {
  const sum = new Float64Array(round(((MELODY.length - 1) * BEAT + RING) * RATE))
  for (const [at, semitones] of MELODY.entries()) {
    addNote(sum.subarray(round(at * BEAT * RATE)), KEYNOTE * 2 ** (semitones / 12))
  }
  const samples = new DataView(new ArrayBuffer(sum.length * BYTES))
  for (const [i, loudness] of sum.entries()) samples.setInt16(i * BYTES, round(LOUDEST * loudness), true)
  return concatBytes(wavHead(samples.byteLength), new Uint8Array(samples.buffer))
}

/** Adds a note that starts at the first of the samples. */
function addNote(sum: Float64Array, hertz: number): void {
  const length = min(sum.length, RING * RATE)
  for (let i = 0; i < length; i++) {
    const time = i / RATE
    const loudness = VOLUME * min(time / SWELL, 1) * (1 - time / RING) * exp(-DECAY * time)
    let wave = 0
    for (const [overtone, share] of OVERTONES.entries()) {
      wave += share * sin(2 * PI * hertz * (overtone + 1) * time)
    }
    sum[i] = (sum[i] ?? 0) + loudness * wave
  }
}

/** The RIFF header for this many bytes of samples. */
function wavHead(bytes: number): Uint8Array {
  const head = new DataView(new ArrayBuffer(44))
  const text = (at: number, letters: string): void => new Uint8Array(head.buffer).set(utf8(letters), at)
  text(0, 'RIFF')
  head.setUint32(4, 36 + bytes, true)
  text(8, 'WAVEfmt ')
  head.setUint32(16, 16, true)
  head.setUint16(20, 1, true)
  head.setUint16(22, 1, true)
  head.setUint32(24, RATE, true)
  head.setUint32(28, RATE * BYTES, true)
  head.setUint16(32, BYTES, true)
  head.setUint16(34, BYTES * 8, true)
  text(36, 'data')
  head.setUint32(40, bytes, true)
  return new Uint8Array(head.buffer)
}
