import { IS_NIGHTLY } from './nightly.js'

/** A test, or a set of tests, whose promise another one shows by day, at a smaller size. */
export const testAtNight = IS_NIGHTLY ? test : test.skip
