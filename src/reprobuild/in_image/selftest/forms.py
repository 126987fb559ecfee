"""Public functions by the form of the arguments that they are called with."""

from __future__ import annotations

# A form is the arguments, parted by blanks: names of `values`, torch's constants, literals, NAME=VALUE.
CALLS: dict[str, dict[str, str]] = {
    "torch": {
        "m": (
            "abs absolute acos adjoint alias_copy amax amin aminmax angle arccos arcsin arcsinh "
            "arctan arctanh argmax argmin argsort argwhere as_tensor asarray asin asinh atan atanh "
            "atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors ceil chain_matmul "
            "cholesky_inverse clone conj conj_physical cos cosh count_nonzero cov cumulative_trapezoid "
            "deg2rad dequantize det detach_copy diag diag_embed diagflat diagonal diagonal_copy diff "
            "digamma erf erfc erfinv exp exp2 expm1 fix flatten fliplr flipud floor frac frexp geqrf "
            "gradient hardshrink hash_tensor histogram i0 inverse isfinite isinf isnan isneginf isposinf "
            "isreal lgamma lobpcg log1p logdet logical_not matrix_exp max mean min mode msort nan_to_num "
            "nanmean nanmedian nansum neg negative nonzero norm numel ones_like pdist pinverse positive "
            "prod qr rad2deg rand_like randn_like ravel real reciprocal resolve_conj resolve_neg rot90 "
            "round sgn sigmoid sign signbit sin sinc sinh slice_copy slogdet square squeeze squeeze_copy "
            "std_mean sum svd t t_copy tan tanh tensor trace trapezoid trapz tril triu trunc unbind "
            "unbind_copy unique_consecutive var_mean where zeros_like"
        ),
        "b 0": "all any",
        "w": "acosh arccosh",
        "x 99": "randint_like",
        "x 1": (
            "adaptive_avg_pool1d avg_pool1d chunk cummax cummin full_like histogramdd hsplit kthvalue "
            "logcumsumexp matrix_power mvlgamma repeat_interleave roll softmax split "
            "split_copy tensor_split unsafe_chunk unsafe_split unsqueeze unsqueeze_copy vsplit"
        ),
        "x y": (
            "add allclose arctan2 atan2 cholesky_solve clamp clip complex copysign cosine_similarity dist "
            "div divide eq equal float_power floor_divide fmax fmin fmod ge greater greater_equal gt "
            "heaviside hypot igamma igammac inner isclose isin kron ldexp le less less_equal logaddexp "
            "logaddexp2 logical_and logical_or logical_xor lt matmul maximum minimum mm mul multiply ne "
            "nextafter not_equal pairwise_distance polar pow remainder searchsorted slice_scatter sub "
            "subtract triangular_solve true_divide xlogy"
        ),
        "square a e": "addbmm",
        "b x y": "addcdiv addcmul",
        "x x y": "addmm",
        "v x u": "addmv",
        "v v v": "addr lerp",
        "6": (
            "arange bartlett_window blackman_window eye hamming_window hann_window kaiser_window ones "
            "rand randn randperm zeros"
        ),
        "x (3,3) (6,1)": "as_strided as_strided_copy",
        "x three (3,3) (6,1)": "as_strided_scatter",
        "squares a e": "baddbmm",
        "x": "bernoulli log log10 log2 logit rsqrt sqrt",
        "x y g": "bilinear",
        "k": "bincount",
        "i j": (
            "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm take "
            "take_along_dim"
        ),
        "i": "bitwise_not",
        "a e": "bmm",
        "v (3,24)": "broadcast_to expand_copy",
        "v u": "bucketize cartesian_prod dot ger meshgrid nanquantile outer vdot",
        "L": "cat column_stack concat concatenate dstack hstack row_stack stack vstack",
        "c 2": "channel_shuffle native_channel_shuffle pixel_shuffle pixel_unshuffle",
        "s": "cholesky",
        "csr": "col_indices_copy crow_indices_copy values_copy",
        "v": "combinations vander",
        "a k1": "conv1d",
        "c k2": "conv2d",
        "cube k3": "conv3d",
        "a tbc five": "conv_tbc",
        "three three": "cross",
        "x k": "diagonal_scatter",
        "a 2": "dsplit",
        "x (1,0)": "flip permute permute_copy",
        "x v k32 0 0 255": "fake_quantize_per_channel_affine",
        "x 0.1 0 0 255": "fake_quantize_per_tensor_affine",
        "array": "from_numpy",
        "(6,6) 2": "full",
        "x 1 i": "gather",
        "sparse x": "hspmm smm",
        "z": "imag view_as_real view_as_real_copy",
        "x 0 k y": "index_add index_copy",
        "x 0 k y 'mean'": "index_reduce",
        "x 1 k": "index_select",
        "spectrum 64 window=window": "istft",
        "0 1 9": "linspace logspace",
        "x lu pivots": "lu_solve",
        "lu pivots": "lu_unpack",
        "b d": "masked_select",
        "x 0 1": "moveaxis movedim select select_copy swapaxes swapdims transpose transpose_copy",
        "x v": "mv orgqr prelu",
        "x 0 1 2": "narrow narrow_copy",
        "x size=5": "nonzero_static",
        "x v y": "ormqr",
        "2 x": "polygamma",
        "x v k32 0 torch.quint8": "quantize_per_channel",
        "x 0.1 10 torch.quint8": "quantize_per_tensor",
        "x torch.quint8 False": "quantize_per_tensor_dynamic",
        "9 (6,6)": "randint",
        "6 6": "range tril_indices triu_indices",
        "x 2 1 0": "renorm",
        "x (4,144)": "reshape",
        "x 1 i y": "scatter scatter_add",
        "x 1 i y 'mean'": "scatter_reduce",
        "x v 0 1": "select_scatter",
        "rows k v (24,24) layout=torch.sparse_csr": "sparse_compressed_tensor",
        "places v (24,24)": "sparse_coo_tensor",
        "rows k blocks (48,48)": "sparse_bsc_tensor sparse_bsr_tensor",
        "rows k v (24,24)": "sparse_csc_tensor sparse_csr_tensor",
        "x (8,16)": "split_with_sizes_copy",
        "sparse sparse x": "sspaddmm",
        "sound 64 window=window return_complex=True": "stft",
        "x (2,2)": "tile",
        "x 0 (2,12)": "unflatten",
        "x 0 2 1": "unfold_copy",
        "k (4,6)": "unravel_index",
        "pairs": "view_as_complex view_as_complex_copy",
        "x torch.float64": "view_copy",
        "a kt1": "conv_transpose1d",
        "c kt2": "conv_transpose2d",
        "cube kt3": "conv_transpose3d",
    },
    "torch.linalg": {
        "m": (
            "cholesky_ex cond det diagonal eig eigh eigvals eigvalsh inv_ex ldl_factor ldl_factor_ex lu "
            "lu_factor lu_factor_ex matrix_exp matrix_norm matrix_rank pinv slogdet svd svdvals vander "
            "vector_norm"
        ),
        "three three": "cross",
        "x v": "householder_product tensorsolve",
        "ld swaps x": "ldl_solve",
        "x y": "lstsq matmul solve solve_ex vecdot",
        "lu pivots x": "lu_solve",
        "x 1": "matrix_power tensorinv",
        "L": "multi_dot",
        "t x upper=False": "solve_triangular",
    },
    "torch.special": {
        "m": (
            "airy_ai bessel_j0 bessel_j1 digamma erf erfc erfcx erfinv exp2 expit expm1 gammaln i0 i0e i1 "
            "i1e log1p log_ndtr modified_bessel_i0 modified_bessel_i1 ndtr psi round sinc "
            "spherical_bessel_j0"
        ),
        "x": (
            "bessel_y0 bessel_y1 entr logit modified_bessel_k0 modified_bessel_k1 ndtri "
            "scaled_modified_bessel_k0 scaled_modified_bessel_k1"
        ),
        "x y": (
            "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
            "gammainc gammaincc hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
            "legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
            "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w xlog1py xlogy"
        ),
        "x 1": "log_softmax logsumexp multigammaln softmax",
        "2 x": "polygamma",
        "w 2": "zeta",
    },
    "torch.fft": {
        "m": (
            "fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft2 ihfftn irfft "
            "irfft2 irfftn rfft rfft2 rfftn"
        ),
        "6": "fftfreq rfftfreq",
        "v": "ihfft",
    },
    "numpy": {
        "m": (
            "abs absolute acos all amax amin angle any arccos arcsin arcsinh arctan arctanh argmax argmin "
            "argsort argwhere around array asanyarray asarray asarray_chkfinite ascontiguousarray "
            "asfortranarray asin asinh asmatrix atan atanh atleast_1d atleast_2d atleast_3d average block "
            "bmat broadcast_arrays cbrt ceil clip column_stack concat concatenate conj conjugate copy "
            "corrcoef cos cosh count_nonzero cov cumprod deg2rad degrees diag diag_indices_from diagflat "
            "diagonal diff dstack ediff1d exp2 expm1 fabs fix flatnonzero flip fliplr flipud floor frexp "
            "from_dlpack frombuffer gradient histogram histogram_bin_edges hstack i0 imag iscomplex "
            "iscomplexobj isfinite isfortran isinf isnan isneginf isposinf isreal isrealobj isscalar "
            "iterable lexsort log1p logical_not matrix_transpose max median meshgrid min modf nan_to_num "
            "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd "
            "nansum nanvar ndim negative nonzero ones_like permute_dims poly positive prod ptp rad2deg "
            "radians ravel real real_if_close reciprocal require rint rot90 round row_stack shape sign "
            "signbit sin sinc sinh size sort sort_complex spacing square squeeze stack tan tanh trace "
            "transpose trapezoid tril tril_indices_from trim_zeros triu triu_indices_from trunc unique "
            "unique_all unique_counts unique_inverse unique_values unstack unwrap var vstack where "
            "zeros_like"
        ),
        "w": "acosh arccosh sqrt",
        "x y": (
            "add allclose append arctan2 array_equal array_equiv atan2 copysign copyto divide divmod "
            "equal extract float_power floor_divide fmax fmin fmod full_like greater greater_equal "
            "heaviside hypot inner isclose isin kron less less_equal linspace logaddexp logaddexp2 "
            "logical_and logical_or logical_xor logspace matvec maximum may_share_memory minimum mod "
            "multiply nextafter not_equal outer polyadd polysub polyval remainder setdiff1d setxor1d "
            "shares_memory subtract tensordot true_divide union1d vdot vecdot vecmat"
        ),
        "sum 0 x": "apply_along_axis",
        "sum x (0,)": "apply_over_axes",
        "6": (
            "arange bartlett blackman broadcast_shapes diag_indices eye hamming hanning identity ones tri "
            "tril_indices triu_indices zeros"
        ),
        "x 1": (
            "argpartition array_split expand_dims fill_diagonal geomspace hsplit nanpercentile pad "
            "partition repeat resize rollaxis split tile vsplit"
        ),
        "x 'float32'": "astype",
        "(6,6)": "bincount indices",
        "i j": (
            "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor delete gcd "
            "intersect1d lcm ldexp left_shift right_shift take take_along_axis"
        ),
        "i": "bitwise_count bitwise_invert bitwise_not invert packbits",
        "6 6": "broadcast_to full kaiser",
        "b d": "choose nanquantile pow power quantile select",
        "v u": "compress correlate histogram2d ix_ polydiv polymul roll searchsorted",
        "three three": "cross",
        "v": "cumulative_prod cumulative_sum histogramdd polyder polyint roots vander",
        "x (1,0)": "digitize einsum_path",
        "a 2": "dsplit",
        "hypot (3,3)": "fromfunction",
        "[1,2,3] 'float64'": "fromiter",
        "'1,2' sep=','": "fromstring",
        "x 0 1": "insert moveaxis swapaxes",
        "v v v": "interp",
        "x": "log10 log2",
        "3 triu": "mask_indices",
        "x k 0": "mintypecode",
        "b x y": "piecewise",
        "v u 2": "polyfit",
        "(6,6) 2": "reshape",
        "bytes": "unpackbits",
        "9 (6,6)": "unravel_index",
        "x b v": "place",
        "x k v": "put",
        "x i y 1": "put_along_axis",
        "x b y": "putmask",
        "indexes (24,24)": "ravel_multi_index",
    },
    "numpy.linalg": {
        "m": (
            "cond det diagonal eig eigvals eigvalsh matrix_norm matrix_rank matrix_transpose norm pinv qr "
            "slogdet svdvals trace vector_norm"
        ),
        "three three": "cross",
        "x y": "lstsq matmul tensordot vecdot",
        "x 1": "matrix_power tensorinv",
        "L": "multi_dot",
        "v u": "outer",
        "x k": "tensorsolve",
        "s": "cholesky",
    },
    "numpy.fft": {
        "m": "fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        "6": "fftfreq rfftfreq",
    },
    "numpy.random": {
        "w 2": "f noncentral_chisquare",
        "9": "bytes rand randn",
        "w": "chisquare pareto power rayleigh standard_gamma weibull",
        "(1,2) 9": "dirichlet",
        "0.3 9": "geometric logseries",
        "m": "gumbel laplace logistic",
        "9 9 9 9": "hypergeometric",
        "v s 3": "multivariate_normal",
        "3 0.4 9": "negative_binomial",
        "2 3 1 9": "noncentral_f",
        "50": "random",
        "x 1": "random_integers",
        "6": "ranf sample standard_cauchy standard_exponential",
        "3 9": "standard_t",
        "0 0.5 1 9": "triangular",
        "1 2 9": "vonmises wald",
        "2 9": "zipf",
    },
    "numpy.random.Generator": {
        "w 2": "beta f noncentral_chisquare",
        "9 0.3 50": "binomial",
        "9": "bytes",
        "w": "chisquare exponential gamma pareto poisson power rayleigh standard_gamma weibull",
        "90 30": "choice",
        "(1,2) 9": "dirichlet",
        "0.3 9": "geometric logseries",
        "m": "gumbel laplace logistic lognormal normal permutation uniform",
        "9 9 9 9": "hypergeometric",
        "0 99 50": "integers",
        "9 (0.3,0.7)": "multinomial",
        "(9,9) 5": "multivariate_hypergeometric",
        "v s 3": "multivariate_normal",
        "3 0.4 9": "negative_binomial",
        "2 3 1 9": "noncentral_f",
        "x": "permuted",
        "50": "random",
        "6": "standard_cauchy standard_exponential standard_normal",
        "3 9": "standard_t",
        "0 0.5 1 9": "triangular",
        "1 2 9": "vonmises wald",
        "2 9": "zipf",
        "v": "shuffle",
    },
    "random": {
        "1 2": "betavariate gammavariate weibullvariate",
        "1": "expovariate paretovariate",
        "0 1": "gauss lognormvariate normalvariate triangular vonmisesvariate",
        "99": "getrandbits",
        "9": "randbytes",
        "": "random",
        "999999": "randrange",
        "(1,2,3,4,5,6,7) 5": "sample",
    },
}
"""By module, by form: the functions."""
