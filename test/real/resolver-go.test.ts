import { compareWithReal } from '../kit/real-comparison.ts';
import { realGo } from '../kit/real-programs.ts';

compareWithReal(await realGo(), 'quick');
